// Package manifest defines desired pods and the objects they reference, as immutable
// values, with their identity and hashes.
//
//	bytes ── decode ──▶ File ──▶ Batch (one per source) ── merge ──▶ Set
//
// This package does no I/O; package manifest/source watches the sources. A *Pod is shared by
// many goroutines. No code changes a *Pod after package decode has returned it.
package manifest

import (
	"cmp"
	"path"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Pod is a desired pod: decoded, defaulted and validated.
type Pod struct {
	// Key is the namespace and full name. The name of a pod from a file or URL ends in the name
	// of the node ("web-node1"). The kubelet names static pods in the same way.
	Key types.NamespacedName
	// NameSuffix is the part of Key.Name that podd has appended, such as "-node1"; "" if podd has
	// appended nothing.
	NameSuffix string
	// UID is metadata.uid if the user set it. Otherwise it is computed from the node, Key and
	// the input of Hash. It consists of 1 to 63 letters, digits and dashes, because it is part
	// of paths.
	UID types.UID
	// HasFixedUID reports whether UID is not computed: the user set it, or Recognize found the UID
	// under which this node already runs the pod.
	HasFixedUID bool
	// Origin is the document from which the pod was decoded.
	Origin Origin
	// Traits define how podd treats the pod differently from pods of other kinds of sources.
	Traits Traits
	// RefusalReason names the first field that podd does not support, as "field: message"; "" if
	// podd supports all fields. A pod with RefusalReason never runs. Only pods of an API server can
	// have it, because other sources omit refused pods.
	RefusalReason string
	// Deletion is not nil if the source requests the deletion of the pod.
	Deletion *Deletion
	// Object is the complete object with defaults. It is never nil and must not be modified.
	Object *v1.Pod
	// Hash is "v1:" and a hexadecimal digest of the pod as the user wrote it. If restartPolicy is
	// Always, Hash does not include the amounts of cpu and memory of containers. If podd's own API
	// wrote the manifest, Hash does not include the mutable fields (decode.Options.IsWrittenByAPI).
	//
	// If two pods have the same UID and different hashes, the newer one replaces the older one. If
	// the hashes are equal, the amounts of the newer one are applied, and only containers with a
	// different StartHash are restarted.
	Hash string
	// SandboxHash is like Hash, but includes only the fields that affect the sandbox. If two
	// versions have the same SandboxHash, the second can run in the sandbox of the first.
	SandboxHash string
	// ServerRuntimeHandler is the handler that the API server has returned for the pod's
	// RuntimeClass. It is nil if the API server has not returned it yet, and for pods of other
	// sources.
	ServerRuntimeHandler *string
	// ContainerHashes has an entry for every init and regular container, by name.
	ContainerHashes map[string]ContainerHash
}

// HasFinishedAtSource reports whether the pod has already finished according to its source. Such a
// pod never runs again, whatever this node has recorded about the pod.
func (p *Pod) HasFinishedAtSource() bool {
	return p != nil && p.Traits.HasStateAtSource && IsTerminal(p.Object.Status.Phase)
}

// A Deletion describes the request of a source to delete a pod.
type Deletion struct {
	GracePeriod time.Duration // at least one second, as in the kubelet
}

// A ContainerHash identifies a version of a container. A comparison of two hashes shows what podd
// must do to replace one version with the other.
type ContainerHash struct {
	StartHash string // if it differs, the container must be restarted
	// Resources is the size of the container: its requests and limits of cpu and memory
	// (FormatSize), and the pod-level limits that it inherits. If it differs, podd changes the cpu
	// and memory of the container in place.
	Resources string
}

// StartHashPrefix returns the first 64 bits of StartHash in hexadecimal. Tools that read the
// container's hash annotation expect this format.
func (h ContainerHash) StartHashPrefix() string {
	digits := h.StartHash
	if _, digest, ok := strings.Cut(digits, ":"); ok {
		digits = digest
	}
	return digits[:min(len(digits), 16)]
}

// Kinds of sources, which are the values of the annotation kubernetes.io/config.source.
const (
	KindFile = "file"
	KindURL  = "http"
	KindAPI  = "api"
)

// An Origin is the document from which a pod or object was decoded.
type Origin struct {
	Kind string // KindFile, KindURL or KindAPI
	// Source is the name of the source, as in Batch.Source.
	Source string
	// Path is the file's path or the URL without userinfo and query.
	Path string
	// Line is the line at which the document begins, counted from 1; 0 if unknown.
	Line   int
	Fields FieldPositions // nil for pods without text
}

// String returns "path:line".
func (o Origin) String() string {
	if o.Line <= 0 {
		return o.Path
	}
	return o.Path + ":" + strconv.Itoa(o.Line)
}

// ShortLocation returns the file name and line of a field for use in a sentence, "db.yaml:17".
// field is a path such as "spec.containers[0].image".
func (o Origin) ShortLocation(field string) string {
	if line := o.Position(field).Line; line > 0 {
		o.Line = int(line)
	}
	if o.Kind != KindURL {
		o.Path = cmp.Or(path.Base(o.Path), o.Path)
	}
	return o.String()
}
