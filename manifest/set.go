package manifest

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/order"
)

// A Set is the desired state: the merge of all sources. It is immutable.
type Set struct {
	Pods map[types.NamespacedName]*Pod
	// TerminatingPods contains the pods whose source requests their deletion (Pod.Deletion). The
	// field Pods may contain another pod with the same key.
	TerminatingPods map[types.NamespacedName]*Pod
	// Node is this node's object in the cluster; nil if no source has sent it.
	Node *Node
	// BatchVersions contains the Version of the newest Batch of each source. It has no entry for a
	// source that does not set Batch.Version.
	BatchVersions map[string]uint64
	// ObjectsBySource contains the objects by source (Origin.Source of a pod). A pod uses only
	// objects of its own source and namespace.
	ObjectsBySource map[string]Objects
	Problems        []Problem
	// CompleteSources is true for each source that was listed completely at least once in this
	// process. The listing may come from the source itself or from its cache on disk. If a
	// source is not complete, a pod that is missing from the Set may still be desired.
	CompleteSources map[string]bool
	// FileStates has one entry for every file and URL, sorted by path.
	FileStates []FileState
}

// A Batch is the whole current content of one source. It is immutable.
type Batch struct {
	Source     string // unique name of the source: its path or its URL
	Kind       string // KindFile, KindURL or KindAPI
	Pods       []*Pod // in the source's order; if two have the same key, the first is used
	Objects    Objects
	Problems   []Problem
	IsComplete bool // see Set.CompleteSources
	Node       *Node
	// Version identifies the Batch. A source can compare it with Set.BatchVersions to find out
	// which of its Batches the Set contains. Version is 0 if the source does not need this.
	Version uint64
	// FileStates has one entry for every file, or one for the URL, sorted by path.
	FileStates []FileState
}

// Severity is Error or Warning.
type Severity string

// Error means that something does not run as the user wrote it. Warning means that everything
// runs as written.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// A Problem is a message about something that a user should correct, with its position. Two
// Problems with equal fields are the same Problem. A Problem has no time; the reader of a Set
// records when a Problem first occurred.
type Problem struct {
	Severity Severity
	Path     string // file or URL, as in Origin.Path; "" if there is none
	Position Position
	// Pod is the full key of the affected pod; zero if unknown.
	Pod types.NamespacedName
	// FieldPath is a field path ("spec.containers[0].image"), or "".
	FieldPath string
	// Message describes the problem and, after a semicolon, the remedy. It never contains
	// values of env, headers or secrets.
	Message string
	// CausesRefusal reports whether a document was refused because of this Problem. If so, the last
	// valid version of the document, if there is one, stays desired.
	CausesRefusal bool
}

// String returns "path:line:col: severity: field: message", which editors can parse.
func (p Problem) String() string {
	s := string(p.Severity) + ": " + p.Text()
	if place := p.Location(); place != "" {
		s = place + ": " + s
	}
	return s
}

// Location returns "path:line:col" without the parts that are unknown.
func (p Problem) Location() string {
	switch {
	case p.Path == "" || p.Position.Line == 0:
		return p.Path
	case p.Position.Column == 0:
		return fmt.Sprintf("%s:%d", p.Path, p.Position.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.Path, p.Position.Line, p.Position.Column)
}

// Text returns "field: message", or only the message if FieldPath is "".
func (p Problem) Text() string {
	if p.FieldPath == "" {
		return p.Message
	}
	return p.FieldPath + ": " + p.Message
}

// SortProblems sorts Problems by file, position and message.
func SortProblems(list []Problem) {
	order.Stable(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column), cmp.Compare(a.Message, b.Message))
	})
}
