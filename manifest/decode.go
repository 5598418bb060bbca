package manifest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options tell Decode where the bytes are from. The zero value decodes a text
// of unknown origin for no node: names get no suffix.
type Options struct {
	Kind   string // KindFile, KindURL or KindAPI; "" is KindFile
	Source string // as in Batch.Source
	Path   string // as in Origin.Path
	// Node is the node's name. Pods from files and URLs get it as their suffix
	// and as spec.nodeName.
	Node string
	// Labels are the node's, which PersistentVolumes may ask for; nil: nobody
	// knows them, and every volume is one of this node.
	Labels map[string]string
	// Suffix takes the place of the node's name behind the pods' names, for pods
	// that run once beside others of the same manifest. They get a UID of their
	// own then, also where the user fixed one. "" is Node.
	Suffix string
	// RestartRules is the feature gate ContainerRestartRules: containers may have a
	// restart policy and rules of their own.
	RestartRules bool
	// Written says that podd's own API wrote the text: its pods keep their names,
	// without a suffix, and what an apiserver lets be changed of a pod is no part
	// of its Hash, so that such an edit is adopted by what runs.
	Written bool
	// Strict makes errors of the warnings about unknown and repeated fields.
	Strict bool
	// Now becomes the annotation kubernetes.io/config.seen; zero leaves it out.
	Now time.Time
}

// File is what one text holds. Pods and objects that were refused are only in
// Problems. Immutable.
type File struct {
	Pods     []*Pod // in the text's order; two may have one key
	Objects  Objects
	Problems []Problem // document by document, each in the order of its lines
}

// Refused says that some document was not taken, so that the text as a whole
// must not replace an earlier good version.
func (f *File) Refused() bool {
	for i := range f.Problems {
		if f.Problems[i].Refused {
			return true
		}
	}
	return false
}

// Decode reads one or many YAML documents, or one of JSON: Pod, PodList, List,
// ConfigMap, Secret, PersistentVolumeClaim and PersistentVolume. It is pure: equal arguments give
// deeply equal results. Each document stands alone; a bad one becomes Problems
// and the rest is decoded. An empty text is a File without pods.
//
// Pods come out with Kubernetes 1.34's defaults, named and identified as static
// pods are, and valid in every field that podd serves. The input may be
// hostile: size, depth, aliases and the number of Problems are bounded.
func Decode(data []byte, o Options) *File {
	if o.Kind == "" {
		o.Kind = KindFile
	}
	d := &decoder{Options: o, file: &File{}}
	parts, err := split(data)
	if err != nil {
		d.refuse(Position{}, "", err.Error())
		return d.file
	}
	for _, part := range parts {
		d.document(part)
	}
	if n := len(d.unlisted); n > 0 {
		rest := Problem{Severity: Warning, Path: d.Path, Message: fmt.Sprintf("%d more problems are not listed; mend these first", n)}
		if slices.Contains(d.unlisted, Error) {
			rest.Severity, rest.Refused = Error, true
		}
		d.file.Problems = append(d.file.Problems, rest)
	}
	return d.file
}

// decoder carries one call of Decode.
type decoder struct {
	Options
	file     *File
	unlisted []Severity // of the Problems beyond maxProblems
}

// tell adds Problems, as many as a file may have.
func (d *decoder) tell(list ...Problem) {
	room := min(maxProblems-len(d.file.Problems), len(list))
	d.file.Problems = append(d.file.Problems, list[:room]...)
	for _, p := range list[room:] {
		d.unlisted = append(d.unlisted, p.Severity)
	}
}

// document decodes one YAML document into the file.
func (d *decoder) document(part part) {
	doc, fault := parse(part)
	if fault != nil {
		d.refuse(fault.at, "", fault.Error())
		return
	}
	if doc.tree != nil {
		d.item(doc.root(), "", "")
	}
}

// refuse adds a Problem about a whole document, or about the field that says
// what it is.
func (d *decoder) refuse(at Position, field, message string) {
	d.tell(Problem{
		Severity: Error, Path: d.Path, Position: at,
		Field: field, Message: printable(message, 1000), Refused: true,
	})
}

// notes starts the Problems of one object.
func (d *decoder) notes(v value) *notes {
	return &notes{path: d.Path, start: v.position(), strict: d.Strict, fields: map[string]Position{}}
}

// origin is where v was written.
func (d *decoder) origin(v value, n *notes) Origin {
	return Origin{Kind: d.Kind, Source: d.Source, Path: d.Path, Line: int(v.position().Line), Fields: n.fields}
}

// pod decodes, defaults and checks one pod.
func (d *decoder) pod(v value) {
	n := d.notes(v)
	v.index(podShape(), n)
	written := userPart(v.tree.(map[string]any))
	known := podShape().check(written, "", n)
	spec := &v1.Pod{}
	n.unmarshal(known, spec)
	p := &Pod{Spec: spec, Origin: d.origin(v, n), Written: d.Written}
	n.adviseGrace(spec)
	setDefaults(spec)
	n.invalid(validatePod(spec, d.Options))
	checkServed(d.effective(known), n)
	checkSources(written, known, n)
	d.identify(p, v, written, n)
	n.advise(p, d.Options)
	n.finish(named(p.Key))
	d.tell(n.list...)
	if !n.refused {
		d.file.Pods = append(d.file.Pods, p)
	}
}

// effective is what the user wrote without what the API has used already: it made
// the name of generateName.
func (d *decoder) effective(known any) any {
	pod, _ := known.(map[string]any)
	meta, _ := pod["metadata"].(map[string]any)
	if !d.Written || meta == nil {
		return known
	}
	pod, meta = maps.Clone(pod), maps.Clone(meta)
	delete(meta, "generateName")
	pod["metadata"] = meta
	return pod
}

// keyOf is the name of an object from a file or URL, without a node's suffix.
func keyOf(namespace, name string) types.NamespacedName {
	if namespace == "" {
		namespace = v1.NamespaceDefault
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// named is a key, or nothing where its name is none, so that no Problem carries
// what cannot be a pod.
func named(key types.NamespacedName) types.NamespacedName {
	if len(validation.IsDNS1123Subdomain(key.Name))+len(validation.IsDNS1123Label(key.Namespace)) > 0 {
		return types.NamespacedName{}
	}
	return key
}
