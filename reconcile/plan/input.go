package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/runtime"
)

// An Input contains all data on which a decision depends. Next does not modify it.
type Input struct {
	// Desired is the desired version. If it is nil and SourcesRead is true, the pod is not
	// desired and is removed.
	Desired *manifest.Pod
	// Successor is a newer version that replaces Desired as soon as it can start; nil if there
	// is none.
	Successor *manifest.Pod
	// Previous is the previous version while one of its containers or sandboxes runs, or one
	// of its exit codes is unknown. Otherwise it is nil. It is also nil if podd never had the
	// manifest of the previous version.
	Previous *manifest.Pod
	// SourcesRead reports whether all sources of the pod were read completely. While it is false
	// and Desired is nil, nothing is removed, because the pod may still be desired.
	SourcesRead bool
	// Observed contains every sandbox of this name, newest first.
	Observed []runtime.Incarnation
	// FirstObservedAt is when this podd process first observed the runtime; zero if it is unknown.
	FirstObservedAt time.Time
	// PodDirs contains the pod directories of this name on disk.
	PodDirs []PodDir
	// JournalError is the reason why the journal of Desired's UID cannot be read; "" if it was read
	// or does not exist.
	JournalError string
	// MayHaveUnobserved reports whether there may be a sandbox or container that was not observed.
	// It is true after an effect with an unknown result, and while the newest observation is older
	// than the first order for the pod.
	MayHaveUnobserved bool
	Node              Node
	// Verdict is the verdict of admission about the newest desired version.
	Verdict Verdict
	// Objects describes the objects that Desired refers to. SuccessorObjects describes the objects
	// that Successor refers to.
	Objects, SuccessorObjects ReferencedObjects
	History                   History
	// Eviction is the reason for stopping the desired version; nil if there is none.
	Eviction *Eviction
	// Deletion contains the grace period of a version that is not desired any more; nil means
	// the grace period in the annotations of its sandbox.
	Deletion *Deletion
	InFlight map[string]Action // the actions in progress, by subject
	// DirsInUse contains the UIDs of the pods whose directories a canceled start may still use.
	// Such a start has not returned, for example because a volume does not respond.
	DirsInUse map[types.UID]bool
	// ForceStop reports whether the grace periods of all stops in progress end now.
	ForceStop bool
	// StopAllReason is the reason why every pod is stopped, such as "podd down"; "" if this was not
	// requested. Desired is nil if StopAllReason is set.
	StopAllReason string
	// Now is the current time, with a monotonic clock reading.
	Now time.Time
}

// A PodDir is a pod directory on disk.
type PodDir struct {
	UID types.UID
	// Hash is the hash of the version for which the directory was created; "" if it is
	// unknown.
	Hash string
	// MayHaveVolumes reports whether volumes may be mounted or stored in the directory.
	MayHaveVolumes bool
	// KeepUntil is the earliest time at which the directory may be removed; zero means now. A
	// directory is kept after podd was killed or has abandoned a call, because the runtime may still
	// create a sandbox with cgroups. podd finds these cgroups only by the name of the directory.
	KeepUntil time.Time
}

// ReferencedObjects describes the ConfigMaps and Secrets that a version refers to. The zero value
// means that the version refers to none.
type ReferencedObjects struct {
	refs.Blocker
	// FilesDigest identifies the content that the files in the version's volumes should have; "" if
	// no file depends on an object.
	FilesDigest string
}

// Node contains the facts about the node on which decisions depend.
type Node struct {
	RuntimeReachable bool   // whether the runtime responds
	RuntimeReady     bool   // whether the runtime is ready
	NetworkReady     bool   // whether the pod network is ready
	RuntimeMessage   string // why the runtime is not reachable or not ready
	NetworkMessage   string // why the pod network is not ready
	// AdoptKubeletPods reports whether podd stops a pod of a kubelet that has the name of a desired
	// pod. Otherwise the desired pod waits.
	AdoptKubeletPods bool
	// MaxBackoff limits the crash back-off; zero means 5 minutes.
	MaxBackoff time.Duration
	// DeadContainers decides how many exited containers remain in the runtime.
	DeadContainers DeadContainerPolicy
	// ShuttingDown reports whether the node is shutting down. During the shutdown no version
	// replaces another, and pods that were stopped for the shutdown are not started again.
	ShuttingDown bool
}

// An Eviction is the request of the node to stop one version of a pod, and its reason. It applies
// only to the version with this UID and Hash, because an edited version may have the same UID.
type Eviction struct {
	UID     types.UID
	Hash    string
	Reason  string // ReasonEvicted, ReasonPreempted or ReasonTerminated; "" means ReasonEvicted
	Message string
	// EventAnnotations are the annotations of the event for the eviction; may be nil. They are not in
	// the journal, because the event is recorded with the decision to stop the pod.
	EventAnnotations map[string]string
	Grace            time.Duration // maximum grace period of an evicted or terminated pod
	// Resource is the resource that a preempted pod releases; "" for other reasons.
	Resource v1.ResourceName
	// Shortage is the resource of which the node was short; zero if the pod is evicted for another
	// reason.
	Shortage Shortage
	// StorageLimit is the ExceededLimit.Signal of a pod that exceeds a storage limit; "" for other
	// reasons.
	StorageLimit string
	// Restarts reports whether the pod starts again after the eviction, if it is the pod of a manifest
	// on this node and its restartPolicy is not Never.
	Restarts bool
	// Transition is the time since the eviction for which the node remains under pressure. The pod does
	// not start again before this time has passed, even if podd is restarted and does not know the pressure
	// any more.
	Transition time.Duration
}

// A Shortage is a resource of which the node was short, so that it evicted a pod. It is stored in
// the journal.
type Shortage struct {
	Signal string // name of the eviction signal, such as "memory.available"
	// Available and Threshold are the amounts of the signal as quantities, such as "50Mi". If the
	// threshold is configured as a percentage, Threshold ends with it, such as "812Mi (10%)".
	Available, Threshold string
}

// String describes the shortage for users.
func (s Shortage) String() string {
	return fmt.Sprintf("%s: %s available, threshold %s", s.Signal, s.Available, s.Threshold)
}

// An Answer is the result of admission.
type Answer int

// The answers. Admit means that the pod may start. Wait means that the pod waits until a
// reservation is released or a resource is available, and that an earlier version of the pod is
// stopped. Reject means that another pod keeps the reservation, or that the node cannot run the
// pod, and that an earlier version of the pod keeps running.
const (
	Admit Answer = iota
	Wait
	Reject
)

// A Verdict is an Answer with its reason, such as "OutOfpods" or "HostPortConflict", and a message
// for users.
type Verdict struct {
	Answer  Answer
	Reason  string
	Message string
	// Insufficient is the resource of which the node has too little for the pod, other than the
	// resources of device plugins; "" if the answer has another reason.
	Insufficient v1.ResourceName
	// NeverFits reports whether the pod would be rejected even if no other pod ran on the node.
	NeverFits bool
	// BlockedByPods reports whether the pod is not admitted only because other pods have the
	// reservations that it needs. It can be admitted when these pods have stopped.
	BlockedByPods bool
	// IsPreliminary reports whether podd decides again within a few seconds.
	IsPreliminary bool
	// IsResize reports whether the version was admitted before. In that case, the answer is about
	// its new size.
	IsResize bool
	// Victim is the pod to stop so that this pod can run; zero if there is none. VictimResource is
	// the first resource that is insufficient without the stop.
	Victim         types.NamespacedName
	VictimResource v1.ResourceName
}

// needsUser reports whether a user must act so that the pod is admitted.
func (v *Verdict) needsUser() bool { return v.Answer == Reject && !v.IsPreliminary }

// History contains the facts that a worker remembers about its pod name. The zero value is valid.
// If a fact differs from what the runtime reports, the runtime takes precedence.
type History struct {
	// Finished is the end of the pod; nil if the pod has not finished.
	Finished *PodEnd
	// Evictions is the value of PodEnd.Evictions at the last eviction after which the pod has
	// started again; 0 if there was none.
	Evictions int
	// Stopping is the incarnation that is being stopped; nil if there is none.
	Stopping *SandboxTermination
	// TerminationMessages contains the termination messages that were read, by container ID.
	TerminationMessages map[string]string
	// Terminations contains the terminations of containers of all versions, by container ID.
	Terminations map[string]Termination
	// StartTime is the time at which the desired version was admitted. Before the admission, it is
	// the time at which podd first processed the version. All times in a History have a monotonic
	// clock reading, even those from before a restart of podd.
	StartTime time.Time
	// Containers contains the history of the containers of the desired version, by name.
	Containers map[string]ContainerHistory
	// SandboxFailure is the last failure to create the sandbox.
	SandboxFailure Failure
	// SandboxAttempt is the lowest attempt number for the next sandbox with the pod's UID.
	// Lower numbers were used by removed sandboxes or are reserved by the runtime.
	SandboxAttempt uint32
	// VolumesFailure is the last failure to prepare the volumes.
	VolumesFailure Failure
	// VolumesReady reports whether the volumes of the desired version are prepared.
	VolumesReady bool
	// WrittenFilesDigest is the value of Objects.FilesDigest from which the content of the volumes
	// was written; "" if the content was not checked yet.
	WrittenFilesDigest string
	// UpdateFailure is the last failure to update the files in the volumes.
	UpdateFailure Failure
	// VolumeCheck is the last result of checking the volumes of a newer version.
	VolumeCheck VolumeCheck
	// ExitSeenAt contains the time at which an exit was first observed, by container ID. The
	// crash back-off is counted from it.
	ExitSeenAt map[string]time.Time
	// Sizes contains the sizes of containers and sandboxes that were resized after their
	// creation, by ID.
	Sizes map[string]Size
	// AllocatedSizes contains the allocated sizes of containers, by name, while the desired sizes
	// are not admitted. podd uses them for containers that the runtime does not list.
	AllocatedSizes map[string]string
	// ResizePodFailure is the last failure to resize the pod's cgroup.
	ResizePodFailure Failure
	// ProbeStates contains the state of probes, by container ID.
	ProbeStates map[string]ContainerProbes
	// SuccessorImages contains the results for the images of Successor, by container name.
	SuccessorImages map[string]Image
	// ReleasedSandboxes contains the IDs of the sandboxes that podd has stopped. The network of
	// these sandboxes is released.
	ReleasedSandboxes map[string]bool
	// Kills contains what podd has released without the runtime, by sandbox ID; see killEvicted. If podd
	// is restarted, it kills the processes again. This fails if the cgroups of the containers were removed
	// in the meantime. Then the volumes remain until the runtime has stopped the pod.
	Kills map[string]KillProgress
	// CleanupFailures contains the last failure of each action that stops or removes an object, by
	// subject.
	CleanupFailures map[string]Failure
}

// PodEnd is the end of a pod that has completed, has failed or was evicted. It is stored in the
// journal.
type PodEnd struct {
	UID     types.UID
	Hash    string
	Size    string // value of manifest.Pod.PodSize; the pod runs again if its size changes
	Failed  bool   // whether the phase is Failed; otherwise it is Succeeded
	Reason  string
	Message string
	At      time.Time
	// IsRejected reports whether this node has rejected the pod. The journal does not contain it, because
	// it is only used to count rejections.
	IsRejected bool `json:"-"`
	// Grace is the maximum grace period of a pod with the reason Evicted or Terminated. Resumes
	// reports whether the pod runs again: after the shutdown, or if it was evicted, after a back-off
	// and when it is admitted again. This is the case for a pod of a manifest on this node.
	Grace   time.Duration `json:",omitempty"`
	Resumes bool          `json:",omitempty"`
	// Resource, StorageLimit, Shortage and Transition are those of the Eviction that has ended the pod.
	Resource     v1.ResourceName `json:",omitempty"`
	StorageLimit string          `json:",omitempty"`
	Shortage     Shortage        `json:",omitzero"`
	Transition   time.Duration   `json:",omitempty"`
	// Evictions is the number of consecutive evictions that caused the back-off, including this one;
	// 0 if the pod does not run again.
	Evictions int `json:",omitempty"`
}

// AppliesTo reports whether f is the end of version p. f may be nil. If the size of p has changed
// since the end, f applies only if p has the trait RunsOnce.
func (f *PodEnd) AppliesTo(p *manifest.Pod) bool {
	return f != nil && f.UID == p.UID && f.Hash == p.Hash && (f.Size == p.PodSize() || p.Traits.RunsOnce)
}

// A SandboxTermination describes how an incarnation is being terminated. It is stored in the
// journal.
type SandboxTermination struct {
	// SandboxID is the ID of the sandbox that is stopped with all its containers.
	SandboxID string
	Since     time.Time
	Grace     time.Duration
	// Why is the reason for users, such as "manifest removed" or "changed".
	Why string
}

// ContainerHistory is the history of the containers with one name.
type ContainerHistory struct {
	// Attempt is the lowest attempt number for the next start. If the runtime lists a container
	// with this or a higher number, the next start uses a higher number. Restarts is the restart
	// count of the next start. It is lower than Attempt if attempt numbers were skipped because the
	// runtime had reserved the names of their containers.
	Attempt, Restarts uint32
	// Image is the last result for the image of the container.
	Image Image
	// StartFailure is the last failure to create or start a container, and ResizeFailure is the
	// last failure to resize it.
	StartFailure, ResizeFailure Failure
	// LastExit is the last exit, or nil if there was none. It remains when the container is removed
	// from the runtime.
	LastExit *Exit
	// EphemeralCreated reports whether an ephemeral container with this name was ever created.
	EphemeralCreated bool
	// RestartRequestedID is the ID of the container whose restart was requested; "" if there is
	// none.
	RestartRequestedID string
	// PostStart is the state of the postStart hook of the newest container.
	PostStart PostStartState
}

// Image is the result of ensuring that the image of a container is present.
type Image struct {
	Name    string             // name in the manifest
	Ref     string             // the runtime's reference; "" if the image is not present
	User    *runtime.ImageUser // user that the image runs as; nil if unknown
	Warning string             // deviation from the pull policy; "" if there is none
	Failure Failure
	// Used reports whether a container was started from the image. If it is true, the pull
	// policy Always requires another pull before the next start.
	Used bool
}

// VolumeCheck is the result of checking the volumes of a version.
type VolumeCheck struct {
	UID     types.UID
	Hash    string
	Failure Failure // zero if the volumes are available
}

// isFor reports whether c is the result for version p.
func (c *VolumeCheck) isFor(p *manifest.Pod) bool { return c.UID == p.UID && c.Hash == p.Hash }

// A Failure describes the last failure of an operation that is retried. The zero value means that
// the operation has not failed.
type Failure struct {
	Count   int    // number of consecutive failures
	Reason  string // waiting reason of the container; "" if there is none
	Message string
	RetryAt time.Time // time of the next retry; zero means now
	// IsFinal reports whether a retry cannot succeed until the manifest or the node changes.
	IsFinal bool
	// HTTPStatus is the HTTP status of the registry for a failed pull; 0 if it is unknown.
	HTTPStatus int
}

// An Exit is the exit of a container. It is stored in the journal.
type Exit struct {
	ID      string
	Code    int32
	Reason  string
	Message string
	// TerminationMessage is the termination message of the container. MessageRead reports
	// whether it was read.
	TerminationMessage string `json:"Said"`
	MessageRead        bool   `json:"Told"`
	// Why is the reason why podd stopped the container; "" if the container exited by itself.
	Why        string
	StartedAt  time.Time
	FinishedAt time.Time
	Attempt    uint32
	// Skipped is Attempt minus the restart count; see ContainerHistory.
	Skipped uint32 `json:",omitempty"`
	// PodRestarts is the number of times that all containers of the pod had been restarted
	// together before this container was created.
	PodRestarts uint32 `json:",omitempty"`
}

// NewExit returns the exit of container c as the runtime reports it: without a termination message
// and without a reason why podd stopped the container.
func NewExit(c *runtime.Container) *Exit {
	return &Exit{
		ID: c.ID, Code: c.ExitCode, Reason: c.Reason, Message: c.Message,
		StartedAt: c.StartedAt, FinishedAt: c.FinishedAt, Attempt: c.Attempt, Skipped: c.Attempt - c.Restarts(), PodRestarts: c.PodRestarts(),
	}
}
