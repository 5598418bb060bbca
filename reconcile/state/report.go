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
	// Pod is the version in effect with its status, or the last version if the pod is no longer
	// desired. It is nil if podd never had a manifest of the pod.
	Pod *v1.Pod
	// Version is the version in effect, and Successor is the version that waits to replace
	// Version. Both may be nil.
	Version, Successor *manifest.Pod
	// IsInSource reports whether the pod is desired, so that Version is not nil, or its source is
	// deleting it.
	IsInSource bool
	// ReservedVersions contains Version with its allocated size. If the actual size differs, it
	// also contains Version with its actual size. IsResizePending reports whether a running
	// container or the pod does not have its desired size yet.
	ReservedVersions []*manifest.Pod
	IsResizePending  bool
	// Decision is the last decision. DecisionSince is the time at which its rule began to apply.
	Decision      plan.Decision
	DecisionSince time.Time
	// Insufficient is the resource because of which the pod is not admitted; see plan.Verdict.
	Insufficient v1.ResourceName
	// Finished is the end of Version, or nil if Version has not finished. IsEndRecorded reports
	// whether the end is on disk.
	Finished      *plan.PodEnd
	IsEndRecorded bool
	// TerminatingEviction is the eviction of a pod that is no longer desired and was evicted while it
	// was being stopped; nil for other pods.
	TerminatingEviction *plan.Eviction
	// LastExits contains the last exit of each container, by container name.
	LastExits map[string]plan.Exit
	// Pulls contains the image pulls in progress, sorted by container name.
	Pulls []PullInProgress
	// ExistsOnNode reports whether the node has a sandbox, a container or a directory of the pod,
	// or an action for the pod is in progress.
	ExistsOnNode bool
	// OnDiskOnly reports whether no process of the pod runs and removing its data on disk
	// failed.
	OnDiskOnly bool
	// VolumePlugins contains the kubelet's name of the plugin of each volume for which the manifest does not
	// determine the plugin, such as a claim, by the name of the volume.
	VolumePlugins map[string]string
	// Observed contains the incarnations on which the decision is based.
	Observed []runtime.Incarnation
	// UIDs contains the UIDs for which the name has a directory or sandbox on this node.
	UIDs []types.UID
}

// A PullInProgress is an image that is being pulled or waits to be pulled. The progress of a pull
// is unknown: CRI's PullImage returns only when the pull has ended, and the growth of the runtime's
// file system includes all images.
type PullInProgress struct {
	Container, Image string
	Since            time.Time
}

// Equal reports whether r and a later report are equal for readers. It ignores fields that only
// the router reads.
func (r *Report) Equal(later *Report) bool {
	return r.Pod == later.Pod && r.Version == later.Version && r.Successor == later.Successor &&
		r.Finished == later.Finished && r.TerminatingEviction == later.TerminatingEviction && r.IsEndRecorded == later.IsEndRecorded && r.ExistsOnNode == later.ExistsOnNode && r.OnDiskOnly == later.OnDiskOnly && r.IsResizePending == later.IsResizePending && r.Insufficient == later.Insufficient && r.DecisionSince.Equal(later.DecisionSince) &&
		maps.Equal(r.LastExits, later.LastExits) && slices.Equal(r.Pulls, later.Pulls) && maps.Equal(r.VolumePlugins, later.VolumePlugins) && hasSameContainers(r.Observed, later.Observed) &&
		r.IsInSource == later.IsInSource && slices.EqualFunc(r.ReservedVersions, later.ReservedVersions, EqualSize) && reflect.DeepEqual(r.Decision, later.Decision)
}

// hasSameContainers reports whether two observations have the same containers in the same states.
func hasSameContainers(a, b []runtime.Incarnation) bool {
	return slices.EqualFunc(a, b, func(a, b runtime.Incarnation) bool {
		return slices.EqualFunc(a.Containers, b.Containers, func(a, b runtime.Container) bool { return a.ID == b.ID && a.State == b.State })
	})
}

// PublishedVersion returns the version of the pod that PodWithStatus last returned; nil if there is
// none.
func (s *State) PublishedVersion() *manifest.Pod { return s.publishedVersion }

// HasEphemeral reports whether the version in force has an ephemeral container with this name.
func (r *Report) HasEphemeral(name string) bool {
	return r.Version != nil && slices.ContainsFunc(r.Version.Object.Spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == name })
}

// HasRemovableContainers reports whether all exited containers of the pod may be removed. This is
// the case if the pod has finished and is cleaned up, and its end does not depend on its
// containers.
//
// If the end is not on disk, for example because the disk is full, podd needs the exit codes of the
// containers: after a restart of podd, only they show that the pod must not run again. podd does
// not need them for a pod that runs again, or whose source stores its status.
func (r *Report) HasRemovableContainers() bool {
	return r.IsCleanedUp() && (r.IsEndRecorded || r.Finished.Resumes || r.Version.Traits.HasStateAtSource)
}

// IsCleanedUp reports whether the pod has finished and nothing of it runs or is mounted any more.
func (r *Report) IsCleanedUp() bool {
	return r.Finished != nil && r.Version != nil && r.Decision.Phase == plan.PhaseCleanedUp
}
