// Package decode turns manifests, in YAML or JSON, into Pods. It sets the defaults of Kubernetes.
// It refuses pods that a kubelet would not accept, and pods with fields that podd does not support.
// Errors and warnings have the position of the field in the text. FromAPI converts a pod of an API
// server.
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

// Options describe the origin of a manifest and the node. The zero value is valid: the origin is
// unknown, and names get no suffix.
type Options struct {
	Kind   string // KindFile, KindURL or KindAPI; "" means KindFile
	Source string // as in Batch.Source
	Path   string // as in Origin.Path
	// NodeName is the node's name. It becomes the suffix of the names of pods from files and URLs,
	// and the spec.nodeName of these pods.
	NodeName string
	// NodeLabels contains the node's labels, which are compared with the node affinity of
	// PersistentVolumes. If NodeLabels is nil, the labels are unknown and every volume is usable.
	NodeLabels map[string]string
	// NameSuffix replaces NodeName in the suffix of pod names; "" means NodeName. If NameSuffix is
	// set, pods get a generated UID even if their manifest contains one. podd run --runonce sets
	// NameSuffix, so that its pods differ from other pods of the same manifest.
	NameSuffix string
	// IsWrittenByAPI reports whether podd's own API wrote the manifest. If so, the names of the
	// pods get no suffix. Pod.Hash also omits the fields that an API server allows to change,
	// because an edit of these fields is applied to the running pod.
	IsWrittenByAPI bool
	// Strict turns the warnings about unknown and duplicate fields into errors.
	Strict bool
	// Now is the value of the annotation kubernetes.io/config.seen; zero omits the annotation.
	Now time.Time
}

// File decodes YAML documents, or one JSON document, of the kinds Pod, PodList, List, ConfigMap,
// Secret, PersistentVolumeClaim, PersistentVolume, ClusterTrustBundle and CSIDriver. File is pure:
// equal arguments give deeply equal results. Documents are independent: an invalid document becomes
// Problems, and all other documents are decoded. The result for an empty text is a File without
// pods.
//
// The decoded pods have the defaults of Kubernetes and the names and UIDs of static pods.
// All their fields are valid and supported by podd. data may be hostile: File limits its size,
// its depth, its aliases and the number of Problems.
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
		d.decodeDocument(part)
	}
	if n := len(d.unlistedSeverities); n > 0 {
		summary := manifest.Problem{Severity: manifest.Warning, Path: d.Path, Message: fmt.Sprintf("%d more problems are not listed; fix these first", n)}
		if slices.Contains(d.unlistedSeverities, manifest.Error) {
			summary.Severity, summary.CausesRefusal = manifest.Error, true
		}
		d.file.Problems = append(d.file.Problems, summary)
	}
	return d.file
}

// validateOptions returns the options for validating a pod.
func (o Options) validateOptions() validate.Options {
	return validate.Options{IsFromAPI: o.Kind == manifest.KindAPI, NodeName: o.NodeName, NameSuffix: o.suffix()}
}

// decoder is the state of one call of File.
type decoder struct {
	Options
	file               *manifest.File
	unlistedSeverities []manifest.Severity // severities of the Problems that are not in file because of maxProblems
}

// addProblems adds Problems up to maxProblems. It adds the severities of all further Problems to
// unlistedSeverities.
func (d *decoder) addProblems(list ...manifest.Problem) {
	listedCount := min(maxProblems-len(d.file.Problems), len(list))
	d.file.Problems = append(d.file.Problems, list[:listedCount]...)
	for _, p := range list[listedCount:] {
		d.unlistedSeverities = append(d.unlistedSeverities, p.Severity)
	}
}

// decodeDocument decodes one YAML document into the file.
func (d *decoder) decodeDocument(part document.Part) {
	v, err := document.Parse(part)
	if err != nil {
		d.refuse(err.Position, "", err.Error())
		return
	}
	if v.Tree != nil {
		d.decodeItem(v, "", "")
	}
}

// refuse adds an error Problem about a whole document, or about a field such as its kind.
func (d *decoder) refuse(at manifest.Position, field, message string) {
	d.addProblems(manifest.Problem{
		Severity: manifest.Error, Path: d.Path, Position: at,
		FieldPath: field, Message: wording.MakePrintable(message, 1000), CausesRefusal: true,
	})
}

// newObjectProblems returns the objectProblems for one object. The result contains the positions of
// the object's fields, and Problems about duplicate fields.
func (d *decoder) newObjectProblems(v document.Value, s *schema.Schema) *objectProblems {
	n := &objectProblems{path: d.Path, startPosition: v.Position(), isStrict: d.Strict}
	n.fields = s.Index(v.Node, n.addFault)
	return n
}

// origin returns the Origin of an object: its file or URL, its line and the positions of its
// fields.
func (d *decoder) origin(v document.Value, n *objectProblems) manifest.Origin {
	return manifest.Origin{Kind: d.Kind, Source: d.Source, Path: d.Path, Line: int(v.Position().Line), Fields: n.fields}
}

// decodePod decodes, defaults and validates one pod.
func (d *decoder) decodePod(v document.Value) {
	n := d.newObjectProblems(v, podSchema())
	userPod := manifest.WithoutServerFields(v.Tree.(map[string]any))
	checkedPod := podSchema().Check(userPod, n.addFault)
	pod := &v1.Pod{}
	n.unmarshal(checkedPod, pod)
	p := &manifest.Pod{Object: pod, Origin: d.origin(v, n), Traits: d.traits()}
	n.adviseGrace(pod)
	defaults.Pod(pod)
	n.addInvalid(validate.Pod(pod, d.validateOptions()))
	n.addProblems(supported.CheckPod(d.withoutGenerateName(checkedPod)))
	checkVolumeSources(userPod, checkedPod, n)
	d.setIdentity(p, v, userPod, n)
	n.advise(p)
	n.finish(keyIfValid(p.Key))
	d.addProblems(n.problems...)
	if !n.isRefused {
		d.file.Pods = append(d.file.Pods, p)
	}
}

// traits returns the KindTraits of the source's kind. If podd's API wrote the manifest, the result
// also contains UpdatesMetadataInPlace.
func (o Options) traits() manifest.Traits {
	t := manifest.KindTraits(o.Kind)
	t.UpdatesMetadataInPlace = t.UpdatesMetadataInPlace || o.IsWrittenByAPI
	return t
}

// withoutGenerateName returns checkedPod, a pod that schema.Check has returned. If podd's API wrote
// the manifest, the result does not contain metadata.generateName, because the API has already
// generated the name.
func (d *decoder) withoutGenerateName(checkedPod any) any {
	pod, _ := checkedPod.(map[string]any)
	meta, _ := pod["metadata"].(map[string]any)
	if !d.IsWrittenByAPI || meta == nil {
		return checkedPod
	}
	pod, meta = maps.Clone(pod), maps.Clone(meta)
	delete(meta, "generateName")
	pod["metadata"] = meta
	return pod
}

// keyIfValid returns key if its namespace and name are valid. Otherwise it returns the zero value,
// so that a Problem never contains an invalid name.
func keyIfValid(key types.NamespacedName) types.NamespacedName {
	if len(validation.IsDNS1123Subdomain(key.Name))+len(validation.IsDNS1123Label(key.Namespace)) > 0 {
		return types.NamespacedName{}
	}
	return key
}
