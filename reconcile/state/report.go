package state

import (
	"maps"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

// A Report is the state of a pod that a worker publishes after a decision. It is immutable.
type Report struct {
	Key types.NamespacedName
	// Pod is the version in force, with its status. It is nil while podd removes something
	// that is not desired and that it never had a manifest of.
	Pod *v1.Pod
	// Version is the manifest of Pod, Successor the one that waits to replace it. Both may
	// be nil.
	Version, Successor *manifest.Pod
	// Held contains Version with its allocated size and, if the actual size differs, Version
	// with its actual size. ResizePending reports whether a running container or the pod does
	// not have its desired size yet.
	Held          []*manifest.Pod
	ResizePending bool
	// Decision is the last decision. Since is when its rule began to match.
	Decision plan.Decision
	Since    time.Time
	// Finished is how Version terminated; nil if it has not.
	Finished *plan.Finished
	// Last has the last exit of each container, by name.
	Last map[string]plan.Exit
	// Pulls are the image pulls in progress, sorted by container name.
	Pulls []Pull
	// Exists reports whether anything of the pod is on this node.
	Exists bool
	// OnDiskOnly reports whether nothing of the pod runs and removing its data on disk
	// failed.
	OnDiskOnly bool
	// Observed has the incarnations that the decision was made on.
	Observed []runtime.Incarnation
	// UIDs has the UIDs of all pods of this name that have something on this node.
	UIDs []types.UID
}

// A Pull is an image that is being pulled, or is queued for that. The progress is not
// known: CRI's PullImage reports nothing until it ends, and the size of a runtime's file
// system is that of all images.
type Pull struct {
	Container, Image string
	Since            time.Time
}

// Equal reports whether a later report shows readers nothing new.
func (r *Report) Equal(later *Report) bool {
	return r.Pod == later.Pod && r.Version == later.Version && r.Successor == later.Successor &&
		r.Finished == later.Finished && r.Exists == later.Exists && r.OnDiskOnly == later.OnDiskOnly && r.ResizePending == later.ResizePending && r.Since.Equal(later.Since) &&
		maps.Equal(r.Last, later.Last) && slices.Equal(r.Pulls, later.Pulls) && reflect.DeepEqual(r.Decision, later.Decision)
}

// HasEphemeral reports whether the pod has an ephemeral container of that name.
func (r *Report) HasEphemeral(name string) bool {
	return r.Version != nil && slices.ContainsFunc(r.Version.Spec.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == name })
}
