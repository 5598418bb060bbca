package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/runtime"
)

// An Input is all data on which a decision depends. Next never writes to it.
type Input struct {
	// Desired is the desired pod. If it is nil and SourcesRead is true, nothing of this name
	// should exist.
	Desired *manifest.Pod
	// Successor is a newer version that replaces Desired as soon as it can start. Until
	// then Desired runs as if there were none. Usually nil.
	Successor *manifest.Pod
	// Previous is the previous version, while something of it runs or one of its exit codes
	// is unknown. It is nil if there is none, or if podd never had its manifest.
	Previous *manifest.Pod
	// SourcesRead reports that all sources of the pod were read completely. Otherwise a missing
	// Desired does not mean that the pod is not desired, and nothing is removed.
	SourcesRead bool
	// Observed contains every sandbox of this name, newest first.
	Observed []runtime.Incarnation
	// Dirs contains the pod directories of this name on disk.
	Dirs []Dir
	// JournalError is why the journal of Desired's UID cannot be read; "" if it can be, or
	// if there is none.
	JournalError string
	// Unobserved reports whether a sandbox or container may exist that has not been observed:
	// an effect ended without its result, or the newest observation is older than the
	// order for the pod.
	Unobserved bool
	Node       Node
	// Verdict is the node's admission of the newest desired version.
	Verdict Verdict
	// Objects is the state of Desired's references, NextObjects of Successor's.
	Objects, NextObjects Objects
	History              History
	// Eviction stops the desired version permanently; nil: there is no reason to.
	Eviction *Eviction
	// Deletion is the grace period with which a version stops when it is no longer desired;
	// nil: its own.
	Deletion *Deletion
	InFlight map[string]Action // by subject
	// DirsInUse contains the UIDs of pods with a directory in use by a canceled start that has
	// not returned, for example because one of its volumes hangs.
	DirsInUse map[types.UID]bool
	// ForceStop makes all stops in progress immediate, without a grace period.
	ForceStop bool
	// Now has a monotonic reading, with which waits are measured.
	Now time.Time
}

// A Dir is a pod directory on disk.
type Dir struct {
	UID types.UID
	// Hash is that of the version for which it was created; "" if unknown, which may be
	// any.
	Hash string
	// Volumes reports that volumes may be mounted or stored in it.
	Volumes bool
	// KeepUntil is the earliest time of its removal; zero: at once. A call of a podd that was
	// killed may still create a sandbox, and cgroups that can only be found through the
	// name of this directory.
	KeepUntil time.Time
}

// Objects is the state of a pod's references to ConfigMaps and Secrets. The zero value is
// that of a pod without references.
type Objects struct {
	refs.Wait
	// Files differs for different contents of its volumes; "" if they do not depend on
	// objects.
	Files string
}

// Node is the state of the node on which decisions depend.
type Node struct {
	Reachable      bool // the runtime responds
	Ready          bool
	NetworkReady   bool
	Message        string // why it is not ready
	NetworkMessage string
	// Adopt stops a kubelet's pods of a desired name instead of waiting for them.
	Adopt bool
	// MaxBackoff limits the crash back-off; zero means 5 minutes.
	MaxBackoff time.Duration
	// ShuttingDown reports a shutdown of the node: no version replaces another, and pods
	// stopped for the shutdown do not restart.
	ShuttingDown bool
}

// Eviction is the reason why the node stops one version of a pod permanently. Both UID and
// Hash must match, because an edit may keep the UID, and must not be evicted because of the
// version before it.
type Eviction struct {
	UID     types.UID
	Hash    string
	Reason  string // Evicted, Preempted or Terminated; "" means Evicted
	Message string
	Grace   time.Duration // maximum grace period of a terminated pod
}

// Answer is the result of admission.
type Answer int

// Admit starts the pod. Wait delays it while a reservation is being released, or a resource is
// not available yet; an earlier version of the pod is stopped for it. Reject delays it as long
// as another pod has the reservation; an earlier version keeps running.
const (
	Admit Answer = iota
	Wait
	Reject
)

// A Verdict is an Answer with its reason ("OutOfpods", "HostPortConflict") and a message
// for users.
type Verdict struct {
	Answer  Answer
	Reason  string
	Message string
	// NeverFits reports that the pod would be rejected even if nothing else ran on the node.
	NeverFits bool
	// Resize reports that the version was admitted before, and the answer is for its new
	// size.
	Resize bool
	// Victim is the pod that is stopped to make room; zero: none.
	Victim types.NamespacedName
}

// History is the memory of one worker about its pod name. The zero value is always valid.
// If the runtime reports a fact, it takes precedence.
type History struct {
	// Finished is set when the pod has finished.
	Finished *Finished
	// Stopping is set while an incarnation is being stopped.
	Stopping *Stopping
	// TerminationMessages contains the termination messages that were read, by container ID.
	TerminationMessages map[string]string
	// Terminations contains the terminations of containers of any version, by ID.
	Terminations map[string]Termination
	// StartTime is when the current version was first processed. Like all times here it is
	// measured by a clock that cannot be set, also across restarts of podd.
	StartTime time.Time
	// Containers of the current version, by name.
	Containers map[string]ContainerHistory
	// Sandbox contains failures to create the sandbox.
	Sandbox Failure
	// SandboxAttempt is the lowest attempt number of a sandbox with the pod's UID that
	// was not used by a removed sandbox and is not reserved by the runtime.
	SandboxAttempt uint32
	// Volumes contains failures to prepare the volumes.
	Volumes Failure
	// VolumesReady reports that the volumes of the current version are prepared.
	VolumesReady bool
	// Written is the Objects.Files that the volumes of the current version contain; "" if
	// that was not checked yet.
	Written string
	// Update contains failures to write newer content.
	Update Failure
	// VolumeCheck is the last result of checking the volumes of a successor.
	VolumeCheck VolumeCheck
	// SeenExit is when an exit was first observed, by container ID: the start of its
	// back-off, monotonic.
	SeenExit map[string]time.Time
	// Sizes contains the sizes that containers and sandboxes got after their creation, by
	// ID.
	Sizes map[string]Size
	// Allocated contains the sizes that containers had when the node stopped admitting
	// larger ones, by name. They apply to a container without a record in the runtime.
	Allocated map[string]string
	// ResizePod contains failures to resize the pod's cgroup.
	ResizePod Failure
	// Probed contains the state of probes, by container ID.
	Probed map[string]Probed
	// Next contains the state of Successor's images, by container.
	Next map[string]Image
	// Released contains the IDs of sandboxes without a network, because it was torn down.
	Released map[string]bool
	// Cleanup contains failures to remove things, by subject.
	Cleanup map[string]Failure
}

// Finished is the end of a pod that has completed, failed or was evicted.
type Finished struct {
	UID     types.UID
	Hash    string
	Size    string // manifest.Pod.PodSize: a changed size runs the pod again, too
	Failed  bool
	Reason  string
	Message string
	At      time.Time
	// Grace is the maximum grace period of a Terminated pod. Resumes reports that the pod
	// runs again after the shutdown, because its manifest is on this node.
	Grace   time.Duration `json:",omitempty"`
	Resumes bool          `json:",omitempty"`
}

// AppliesTo reports whether f is the end of p; f may be nil. If p does not have the trait
// RunsOnce, f applies only to its size.
func (f *Finished) AppliesTo(p *manifest.Pod) bool {
	return f != nil && f.UID == p.UID && f.Hash == p.Hash && (f.Size == p.PodSize() || p.Traits.RunsOnce)
}

// Stopping is a termination in progress.
type Stopping struct {
	// SandboxID is the incarnation; everything in it is stopped.
	SandboxID string
	Since     time.Time
	Grace     time.Duration
	// Why is for users: "manifest removed", "changed", "restart requested".
	Why string
}

// ContainerHistory is the history of one container name.
type ContainerHistory struct {
	// Attempt is the lowest unused attempt number, unless the runtime has a higher one, and
	// Restarts the restart count of the next start. The difference is the number of
	// attempts with a name that the runtime holds without a container.
	Attempt, Restarts uint32
	// Image is the last result for its image.
	Image Image
	// Start contains failures to create or start it, Resize to resize it.
	Start, Resize Failure
	// LastExit survives the removal of the runtime's record; nil: never exited.
	LastExit *Exit
	// Created reports that an ephemeral container of this name was created.
	Created bool
	// RestartID is the container whose restart was requested.
	RestartID string
	// PostStart is the hook of the newest container.
	PostStart Hook
}

// Image is the result of ensuring that a container's image is present.
type Image struct {
	Name    string             // as in the spec
	Ref     string             // "" until it is present
	User    *runtime.ImageUser // of Ref; nil: unknown
	Warning string             // deviation from the pull policy, or ""
	Failure Failure
	// Used reports that a container was started from it; the policy Always then requires a
	// new check.
	Used bool
}

// VolumeCheck is the result of checking the volumes of a version.
type VolumeCheck struct {
	UID     types.UID
	Hash    string
	Failure Failure // zero: they are available
}

// isFor reports whether the result is for p.
func (c *VolumeCheck) isFor(p *manifest.Pod) bool { return c.UID == p.UID && c.Hash == p.Hash }

// A Failure is a failed operation, with the time of its retry.
type Failure struct {
	Count   int
	Reason  string // container waiting reason, or ""
	Message string
	Until   time.Time // time of the next try; zero: at once
	// Final reports that a retry does not help until something changes.
	Final bool
	// Status is the registry's HTTP status of a failed pull; 0: unknown.
	Status int
}

// An Exit is the exit of a container.
type Exit struct {
	ID      string
	Code    int32
	Reason  string
	Message string
	// TerminationMessage is the message of the container, and MessageRead reports that it was
	// read.
	TerminationMessage string `json:"Said"`
	MessageRead        bool   `json:"Told"`
	// Why is why podd stopped it, "" if it exited by itself.
	Why        string
	StartedAt  time.Time
	FinishedAt time.Time
	Attempt    uint32
	// Skipped is Attempt minus its restart count, see ContainerHistory.
	Skipped uint32 `json:",omitempty"`
}
