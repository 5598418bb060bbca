// Package manifest is what should run: the wanted pods and the local objects
// they read, as immutable values, and the pure functions that make them from
// bytes.
//
//	bytes ── Decode ──▶ File ──▶ Batch (one a source) ── Merge ──▶ Set
//
// Nothing here does I/O; package manifest/source does the watching. A *Pod is
// shared by every goroutine that sees it and is never written after Decode
// returned it.
package manifest

import (
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is one wanted pod, decoded, defaulted and validated.
type Pod struct {
	// Key is namespace and full name; a pod from a file or URL carries the
	// node's name as a suffix, as the kubelet's static pods do ("web-node1").
	Key types.NamespacedName
	// Suffix is what Key.Name has behind the user's name, its dash included; ""
	// for nothing.
	Suffix string
	// UID is metadata.uid where the user fixed it, else made of node, key and
	// what Hash is of. It becomes a path: [A-Za-z0-9-]{1,63}.
	UID types.UID
	// FixedUID says that the user wrote the UID, or a kubelet had given it to the pod;
	// see Recognize.
	FixedUID bool
	// Written is Options.Written.
	Written bool
	// Origin tells where the pod was written.
	Origin Origin
	// Refused is what of a pod of an API server podd does not serve, and so never
	// runs it: "field: message"; "" for nothing. Other pods are not taken at all.
	Refused string
	// Deletion says that the source wants the pod ended; nil: it is to run.
	Deletion *Deletion
	// Spec is the whole object with defaults; never nil, never written.
	Spec *v1.Pod
	// Hash is of the user's canonical JSON without, with restartPolicy Always, the
	// amounts of cpu and memory of containers, and of what Options.Written leaves
	// in, "v1:<hex>"; two pods with one UID and unequal Hash are two versions, the
	// newer replaces the older. With equal Hash what runs gets the amounts of the
	// newer, and only containers of another Start are started again.
	Hash string
	// SandboxHash is Hash of only what a sandbox is made from; equal hashes
	// mean that the sandbox may stay. "v1:<hex>".
	SandboxHash string
	// Handler is what the RuntimeClass of a cluster's pod says; nil for other pods,
	// and while nobody has told.
	Handler *string
	// Containers has an entry for every init and regular container, by name.
	Containers map[string]ContainerHash
}

// ContainerHash tells how far two versions of a container differ.
type ContainerHash struct {
	Start string // differs: the container must be started again
	// Size differs: its cpu and memory are changed in place. See SizeOf.
	Size string
}

// Digits are the first 64 bits of Start in hexadecimal digits, as readers of a
// container's annotation expect a hash.
func (h ContainerHash) Digits() string {
	digits := h.Start
	if _, after, ok := strings.Cut(digits, ":"); ok {
		digits = after
	}
	return digits[:min(len(digits), 16)]
}

// Kinds of source, the values of the annotation kubernetes.io/config.source.
const (
	KindFile = "file"
	KindURL  = "http"
	KindAPI  = "api"
)

// Origin is the document that a pod or object was decoded from.
type Origin struct {
	Kind string // KindFile, KindURL or KindAPI
	// Source names the source, as in Batch.Source.
	Source string
	// Path is the file's path or the URL; URLs carry no userinfo or query.
	Path string
	// Line is where the document begins, from 1; 0 when unknown.
	Line int
	// Fields finds a field's position by its path ("spec.containers[0].image").
	// Read-only; nil for pods without text.
	Fields map[string]Position
}

// Position is a place in a text, both from 1; the zero value is unknown.
type Position struct{ Line, Column uint32 }

// String is "path:line", the form in which Problems point at another place.
func (o Origin) String() string {
	if o.Line <= 0 {
		return o.Path
	}
	return o.Path + ":" + strconv.Itoa(o.Line)
}
