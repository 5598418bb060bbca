package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// Input is all that a decision rests on. Next never writes to it.
type Input struct {
	// Desired is the wanted pod; nil means that nothing of this name should
	// exist, once Certain says so.
	Desired *manifest.Pod
	// Successor is a newer version that takes Desired's place as soon as it can
	// start; until then Desired is cared for as if there were none. Often nil.
	Successor *manifest.Pod
	// Leaving is the version that was in force before, while something of it runs;
	// nil for none, or when podd never had its manifest.
	Leaving *manifest.Pod
	// Certain says that a nil Desired was seen in a complete listing of the
	// sources. Without it nothing is removed.
	Certain bool
	// Observed is every sandbox of this name, newest first.
	Observed []runtime.Incarnation
	// Dirs are the pod directories of this name found on disk.
	Dirs []Dir
	// Unseen says that a sandbox or container may be there of which nothing was
	// seen yet: an effect ended without telling, or the last look at the runtime
	// is older than the wish for the pod.
	Unseen bool
	Node   Node
	// Verdict is the node's admission of the newest wanted version.
	Verdict Verdict
	// Objects is what Desired's references come to, NextObjects what Successor's.
	Objects, NextObjects Objects
	History              History
	// Evict ends the wanted version for good; nil: no reason to.
	Evict *Evict
	// Delete says with what grace a version ends once it is not wanted any more;
	// nil: with its own.
	Delete   *Delete
	InFlight map[string]Action // by subject
	// Hurry ends without grace whatever is being ended.
	Hurry bool
	// Now carries a monotonic reading: waits are measured with it.
	Now time.Time
}

// Dir is a pod directory on disk.
type Dir struct {
	UID types.UID
	// Hash is of the version it was made for; "" when unknown, which may be any.
	Hash string
	// Volumes says that something may be mounted or kept in it.
	Volumes bool
	// Keep is when it may be removed at the earliest; zero: at once. A call of a
	// podd that was killed may still make a sandbox, and cgroups that nothing
	// but this directory's name leads to.
	Keep time.Time
}

// Objects is what a pod's references to ConfigMaps and Secrets come to. The zero
// value is that of a pod without any.
type Objects struct {
	manifest.Wait
	// Files tells one content of what its volumes are written from from another;
	// "" when none is.
	Files string
}

// Node is what decisions need to know of the machine.
type Node struct {
	Reachable      bool // the runtime answers
	Ready          bool
	NetworkReady   bool
	Message        string // why not ready
	NetworkMessage string
	// Adopt ends a kubelet's pods of a wanted name instead of waiting for them.
	Adopt bool
	// MaxBackoff caps the crash back-off; zero means 5 minutes.
	MaxBackoff time.Duration
	// ShuttingDown says that the machine goes down: no version takes the place of
	// another, and what was ended for it stays so.
	ShuttingDown bool
}

// Evict is why the node does not go on running a pod.
type Evict struct {
	UID     types.UID
	Reason  string // Evicted, Preempted or Terminated; "" is Evicted
	Message string
	Grace   time.Duration // the most that a terminated pod gets
}

// Answer is what admission says of a wanted pod.
type Answer int

// Admit starts it. Wait keeps it back while a claim is on its way to being
// freed, or while nothing is there yet that could be claimed; an earlier version
// of the pod is ended for it. Reject keeps it back for as long as something else
// holds the claim: an earlier version runs on.
const (
	Admit Answer = iota
	Wait
	Reject
)

// Verdict is an Answer with its reason ("OutOfpods", "HostPortConflict") and a
// text for the user.
type Verdict struct {
	Answer  Answer
	Reason  string
	Message string
	// Never says that the node would not have room if nothing else ran.
	Never bool
	// Resize says that the version was admitted, and the answer is to its new size.
	Resize bool
	// Preempts is the pod that is ended to make room; zero: none is.
	Preempts types.NamespacedName
}

// History is what one worker remembers of its pod name. The zero value knows
// nothing and is always safe: facts of the runtime win over it.
type History struct {
	// Finished is set once the pod ran to its end.
	Finished *Finished
	// Stopping is set while an incarnation is being ended.
	Stopping *Stopping
	// Said has the termination messages that were read, by container ID.
	Said map[string]string
	// Endings are those of containers, by ID, of any version.
	Endings map[string]Ending
	// StartTime is when the present version was first acted upon.
	StartTime time.Time
	// Containers by name, of the present version.
	Containers map[string]ContainerHistory
	// Sandbox remembers failures to make the sandbox.
	Sandbox Failure
	// Volumes remembers failures to prepare the volumes.
	Volumes Failure
	// VolumesReady says that the volumes of the present version are prepared.
	VolumesReady bool
	// Written is the Objects.Files that the volumes of the present version have;
	// "" when nobody looked yet.
	Written string
	// Update remembers failures to write a newer one.
	Update Failure
	// Checked is the last answer about the volumes of a version to come.
	Checked Checked
	// SeenExit is when an exit was first seen, by container ID: the anchor of
	// its back-off, monotonic.
	SeenExit map[string]time.Time
	// Sizes are those that containers and sandboxes were given after they were
	// made, by ID; see runtime.AnnotationSize.
	Sizes map[string]string
	// Allocated are the sizes that containers had when the node began to admit no
	// more, by name: they hold for one whose records are gone.
	Allocated map[string]string
	// ResizePod remembers failures to resize the pod's cgroup.
	ResizePod Failure
	// Probed is what is remembered of probes, by container ID.
	Probed map[string]Probed
	// Next has what is known of the images of Successor, by container.
	Next map[string]Image
	// Released lists sandboxes whose network was torn down, by ID.
	Released map[string]bool
	// Cleanup remembers failures to remove things, by subject.
	Cleanup map[string]Failure
}

// Finished is the end of a pod whose policy is Never or OnFailure, or that was
// evicted.
type Finished struct {
	UID     types.UID
	Hash    string
	Size    string // manifest.Pod.PodSize: an edit of it, too, has the pod run again
	Failed  bool
	Reason  string
	Message string
	At      time.Time
	// Grace is the most that a Terminated pod got. Resumes says that it runs again
	// once the node does: a manifest on this machine stands for it.
	Grace   time.Duration `json:",omitempty"`
	Resumes bool          `json:",omitempty"`
}

// Of tells whether it is the end of p; f may be nil. One of a cluster ends once,
// in whatever size.
func (f *Finished) Of(p *manifest.Pod) bool {
	return f != nil && f.UID == p.UID && f.Hash == p.Hash && (f.Size == p.PodSize() || ofCluster(p))
}

// ofCluster says that a cluster has the pod: it is one for as long as its UID, and
// once it failed or is gone it is never run again.
func ofCluster(p *manifest.Pod) bool { return p != nil && p.Origin.Kind == manifest.KindAPI }

// Stopping is a termination under way.
type Stopping struct {
	// SandboxID is the incarnation; everything in it is ended.
	SandboxID string
	Since     time.Time
	Grace     time.Duration
	// Why is for users: "manifest removed", "changed", "restart asked".
	Why string
}

// ContainerHistory is what is remembered of one container name.
type ContainerHistory struct {
	// Attempt is the lowest attempt number not yet used, when the runtime does
	// not know better.
	Attempt uint32
	// Image is the last answer about its image.
	Image Image
	// Start remembers failures to create or start it, Resize to resize it.
	Start, Resize Failure
	// LastExit survives the loss of the runtime's record; nil: never exited.
	LastExit *Exit
	// Made says that an ephemeral container of this name was created.
	Made bool
	// RestartID is the container a user asked to restart.
	RestartID string
	// PostStart is the hook of the newest container.
	PostStart Hook
}

// Image is what came of making a container's image present.
type Image struct {
	Name    string             // as in the spec
	Ref     string             // "" until it is present
	User    *runtime.ImageUser // of Ref; nil: not known
	Warning string             // what is not as the policy asked, or ""
	Failure Failure
	// Used says that a container was started from this answer; the policy
	// Always then asks again.
	Used bool
}

// Checked is what came of looking whether a version could have its volumes.
type Checked struct {
	UID     types.UID
	Hash    string
	Failure Failure // zero: it could
}

// Of tells whether the answer is about p.
func (c *Checked) Of(p *manifest.Pod) bool { return c.UID == p.UID && c.Hash == p.Hash }

// Failure is a thing that did not work, and when it may be tried again.
type Failure struct {
	Count   int
	Reason  string // container waiting reason, or ""
	Message string
	Until   time.Time // not before; zero: at once
	// Final says that trying again does not help until something changes.
	Final bool
	// Status is the registry's HTTP status of a failed pull; 0: none is known.
	Status int
}

// Exit is a container's end.
type Exit struct {
	ID      string
	Code    int32
	Reason  string
	Message string
	// Said is the container's termination message, and Told that it was read.
	Said string
	Told bool
	// Why is why podd ended it, "" when it ended by itself.
	Why        string
	StartedAt  time.Time
	FinishedAt time.Time
	Attempt    uint32
}
