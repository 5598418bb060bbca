// Package decode turns manifests, in YAML or JSON, into Pods that a kubelet would accept:
// with the defaults of Kubernetes 1.34, valid, and without fields that podd does not
// support. Errors and warnings have the position of the field in the text. FromAPI does the
// same for a pod of an API server.
package decode

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
	"podd/manifest/defaults"
	"podd/manifest/document"
	"podd/manifest/schema"
	"podd/manifest/supported"
	"podd/manifest/validate"
	"podd/manifest/wording"
)

// Options describe the origin of the bytes and the node. The zero value is valid: the
// origin is unknown, and names get no suffix.
type Options struct {
	Kind   string // KindFile, KindURL or KindAPI; "" means KindFile
	Source string // as in Batch.Source
	Path   string // as in Origin.Path
	// Node is the node's name. It becomes the suffix of pods from files and URLs, and their
	// spec.nodeName.
	Node string
	// Labels are the node's labels, for the node affinity of PersistentVolumes. If it is
	// nil, the labels are unknown and every volume is usable.
	Labels map[string]string
	// Suffix replaces the node's name in the names of pods. It is for pods that run once in
	// addition to others of the same manifest. They always get a generated UID. "" means
	// Node.
	Suffix string
	// RestartRules is the feature gate ContainerRestartRules: containers may have a restart
	// policy and restart rules.
	RestartRules bool
	// WrittenByAPI reports that podd's own API wrote the manifest. Its pods get no suffix, and
	// Hash does not contain the fields that an API server allows to change, so that such an
	// edit is applied to the running pod.
	WrittenByAPI bool
	// Strict turns the warnings about unknown and duplicate fields into errors.
	Strict bool
	// Now becomes the annotation kubernetes.io/config.seen; zero omits it.
	Now time.Time
}

// File reads YAML documents, or one JSON document: Pod, PodList, List, ConfigMap, Secret,
// PersistentVolumeClaim and PersistentVolume. It is pure: equal arguments give deeply equal
// results. Documents are independent: a bad one becomes Problems and the others are
// decoded. An empty text is a File without pods.
//
// The pods have the defaults of Kubernetes 1.34 and the names and UIDs of static pods, and
// all fields are valid and supported by podd. The input may be hostile: size, depth, aliases
// and the number of Problems are limited.
func File(data []byte, o Options) *manifest.File {
	if o.Kind == "" {
		o.Kind = manifest.KindFile
	}
	d := &decoder{Options: o, file: &manifest.File{}}
	parts, err := document.Split(data)
	if err != nil {
		d.refuse(manifest.Position{}, "", err.Error())
		return d.file
	}
	for _, part := range parts {
		d.document(part)
	}
	if n := len(d.unlisted); n > 0 {
		rest := manifest.Problem{Severity: manifest.Warning, Path: d.Path, Message: fmt.Sprintf("%d more problems are not listed; fix these first", n)}
		if slices.Contains(d.unlisted, manifest.Error) {
			rest.Severity, rest.Refused = manifest.Error, true
		}
		d.file.Problems = append(d.file.Problems, rest)
	}
	return d.file
}

// validation returns the options for validating a pod.
func (o Options) validation() validate.Options {
	return validate.Options{API: o.Kind == manifest.KindAPI, Node: o.Node, Suffix: o.suffix(), RestartRules: o.RestartRules}
}

// decoder is the state of one call of File.
type decoder struct {
	Options
	file     *manifest.File
	unlisted []manifest.Severity // severities of the Problems beyond maxProblems
}

// addProblems adds Problems up to maxProblems.
func (d *decoder) addProblems(list ...manifest.Problem) {
	room := min(maxProblems-len(d.file.Problems), len(list))
	d.file.Problems = append(d.file.Problems, list[:room]...)
	for _, p := range list[room:] {
		d.unlisted = append(d.unlisted, p.Severity)
	}
}

// document decodes one YAML document into the file.
func (d *decoder) document(part document.Part) {
	v, err := document.Parse(part)
	if err != nil {
		d.refuse(err.Position, "", err.Error())
		return
	}
	if v.Tree != nil {
		d.item(v, "", "")
	}
}

// refuse adds a Problem about a whole document, or about the field that identifies its
// kind.
func (d *decoder) refuse(at manifest.Position, field, message string) {
	d.addProblems(manifest.Problem{
		Severity: manifest.Error, Path: d.Path, Position: at,
		Field: field, Message: wording.Printable(message, 1000), Refused: true,
	})
}

// notes returns the notes for one object, which contain the positions of its fields and its
// duplicate fields.
func (d *decoder) notes(v document.Value, s *schema.Schema) *notes {
	n := &notes{path: d.Path, start: v.Position(), strict: d.Strict}
	n.fields = s.Index(v.Node, n.addFault)
	return n
}

// origin returns the origin of v.
func (d *decoder) origin(v document.Value, n *notes) manifest.Origin {
	return manifest.Origin{Kind: d.Kind, Source: d.Source, Path: d.Path, Line: int(v.Position().Line), Fields: n.fields}
}

// pod decodes, defaults and validates one pod.
func (d *decoder) pod(v document.Value) {
	n := d.notes(v, podSchema())
	written := manifest.UserPart(v.Tree.(map[string]any))
	known := podSchema().Check(written, n.addFault)
	spec := &v1.Pod{}
	n.unmarshal(known, spec)
	p := &manifest.Pod{Spec: spec, Origin: d.origin(v, n), Traits: d.traits()}
	n.adviseGrace(spec)
	defaults.Pod(spec)
	n.invalid(validate.Pod(spec, d.validation()))
	n.addAll(supported.Pod(d.effective(known)))
	checkSources(written, known, n)
	d.identify(p, v, written, n)
	n.advise(p, d.Options)
	n.finish(validKey(p.Key))
	d.addProblems(n.list...)
	if !n.refused {
		d.file.Pods = append(d.file.Pods, p)
	}
}

// traits returns the traits of the pods of the source.
func (o Options) traits() manifest.Traits {
	t := manifest.KindTraits(o.Kind)
	t.AdoptsMetadata = t.AdoptsMetadata || o.WrittenByAPI
	return t
}

// effective returns the manifest without generateName if podd's API wrote it, because the
// API has already generated the name.
func (d *decoder) effective(known any) any {
	pod, _ := known.(map[string]any)
	meta, _ := pod["metadata"].(map[string]any)
	if !d.WrittenByAPI || meta == nil {
		return known
	}
	pod, meta = maps.Clone(pod), maps.Clone(meta)
	delete(meta, "generateName")
	pod["metadata"] = meta
	return pod
}

// validKey returns key, or the zero value if it is not a valid name, so that a Problem never
// contains an invalid name.
func validKey(key types.NamespacedName) types.NamespacedName {
	if len(validation.IsDNS1123Subdomain(key.Name))+len(validation.IsDNS1123Label(key.Namespace)) > 0 {
		return types.NamespacedName{}
	}
	return key
}
