package manifest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Set is everything that should run now, the merge of all sources. Immutable.
type Set struct {
	Pods map[types.NamespacedName]*Pod
	// Leaving are those that their source has and wants ended, with a Deletion; one
	// of Pods may have the name already.
	Leaving map[types.NamespacedName]*Pod
	// Node is this machine as a cluster has it; nil: there is none that told.
	Node *Node
	// Versions has the newest Batch.Version of every source, where that is any.
	Versions map[string]uint64
	// Objects by source: they serve only pods of their own source, whose
	// Origin.Source is the key here, and of their own namespace.
	Objects  map[string]Objects
	Problems []Problem
	// Complete has true for a source whose full listing was seen at least once
	// in this process, from the source itself or from its cache on disk. Only
	// then does the absence of a pod mean anything.
	Complete map[string]bool
	// Files has one entry for every file and URL, sorted by path.
	Files []FileState
}

// Batch is the whole current content of one source. Immutable.
type Batch struct {
	Source   string // unique name of the source: its path or its URL
	Kind     string // KindFile, KindURL or KindAPI
	Pods     []*Pod // in the source's order; of two with one key the first wins
	Objects  Objects
	Problems []Problem
	Complete bool // see Set.Complete
	Node     *Node
	// Version tells a source which of its batches a Set is made of; 0: it does not
	// ask.
	Version uint64
	// Files has one entry for every file, or the one URL, sorted by path.
	Files []FileState
}

// Objects are the documents beside the pods, by kind and name.
type Objects struct {
	ConfigMaps map[types.NamespacedName]*v1.ConfigMap
	Secrets    map[types.NamespacedName]*v1.Secret
	Claims     map[types.NamespacedName]*v1.PersistentVolumeClaim
	// Volumes are PersistentVolumes; their keys have no namespace.
	Volumes map[types.NamespacedName]*v1.PersistentVolume
	// Elsewhere has those of Volumes whose nodeAffinity is for other nodes.
	Elsewhere map[types.NamespacedName]bool
	// Before is a source that was not read whole yet, and whose claims come before
	// those here; "" for none.
	Before string
	// Kept has the claims whose data is in a directory of podd's; see Bind.
	Kept map[types.NamespacedName]bool
	// Origins tells of each of them where it was written; no Fields. Those of an API
	// server have none.
	Origins map[ObjectRef]Origin
	// Cluster has what else an API server says; nil for objects of manifests.
	Cluster *Cluster

	index *claimIndex // nil: not made yet
}

// ObjectRef names an object: "ConfigMap", "Secret", "PersistentVolumeClaim" or
// "PersistentVolume", of an API server also "RuntimeClass", "VolumeAttachment" or the
// token of a pod, "TokenRequest"; PersistentVolumes, RuntimeClasses and
// VolumeAttachments have no namespace.
type ObjectRef struct {
	Kind string
	types.NamespacedName
}

// Severity of a Problem.
type Severity string

// An error keeps something from running as written; a warning does not.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Problem is something a user should mend, placed where they wrote it. Equal
// Problems are one; the value carries no time, its owner remembers since when.
type Problem struct {
	Severity Severity
	Path     string // file or URL, as in Origin.Path; "" when there is none
	Position Position
	// Pod is the full key of the pod concerned; zero when unknown.
	Pod types.NamespacedName
	// Field is a field path ("spec.containers[0].image"), or "".
	Field string
	// Message says what is wrong and, after a semicolon, what to do.
	// It never holds values of env, headers or secrets.
	Message string
	// Refused says that a document was not taken for this; where an earlier
	// version of it was good, that version stays wanted.
	Refused bool
}

// String is "path:line:col: severity: field: message", the form editors parse.
func (p Problem) String() string {
	s := string(p.Severity) + ": " + p.What()
	if place := p.Place(); place != "" {
		s = place + ": " + s
	}
	return s
}

// Place is "path:line:col", as far as it is known.
func (p Problem) Place() string {
	switch {
	case p.Path == "" || p.Position.Line == 0:
		return p.Path
	case p.Position.Column == 0:
		return fmt.Sprintf("%s:%d", p.Path, p.Position.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.Path, p.Position.Line, p.Position.Column)
}

// What is "field: message".
func (p Problem) What() string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}
