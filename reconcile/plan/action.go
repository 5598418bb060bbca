package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// Action describes one effect. At most one action of a subject is under way.
// String is for users and logs; it never prints env, headers or credentials.
type Action interface {
	Subject() string
	Verb() string
	String() string
	sealed()
}

// EnsureImage makes a container's image present by its pull policy.
type EnsureImage struct {
	Container string
	Image     string
	Policy    string
	// Successor says that it is for the version that waits to take over.
	Successor bool
}

// PrepareVolumes makes the pod's directory and volumes; doing it twice is
// harmless.
type PrepareVolumes struct{ UID types.UID }

// UpdateVolumes brings the files of a running pod's volumes to what its objects
// now hold; doing it twice is harmless.
type UpdateVolumes struct {
	UID   types.UID
	Files string // as in Objects
}

// CheckVolumes looks, making nothing, whether a version that is to take over
// could have its volumes and the files of its profiles.
type CheckVolumes struct {
	UID  types.UID
	Hash string
}

// RunSandbox makes and starts the pod's sandbox.
type RunSandbox struct{ Attempt uint32 }

// StartContainer creates and starts a container, or starts the one of
// CreatedID that an interrupted start left behind.
type StartContainer struct {
	Container string
	SandboxID string
	Attempt   uint32
	Backoff   int
	// ImageRef is what the container is created from, ImageUser who that very image
	// says it runs as: a later start must not run as another user than the first
	// (CVE-2019-11245). nil: nobody has looked.
	ImageRef  string
	ImageUser *runtime.ImageUser
	// CreatedID is the container an interrupted start left; "" for none.
	CreatedID string
	// TargetID is the container whose processes it is to see; "" for its own.
	TargetID string
	// PostStart says that a hook is owed once it runs.
	PostStart bool
	Why       string
}

// ResizeContainer gives a running container its size in Desired; doing it twice
// is harmless.
type ResizeContainer struct{ Container, ID string }

// ResizePod gives the pod's cgroup the size of Desired as a whole; likewise.
type ResizePod struct{ SandboxID string }

// StopContainer ends a container, with TERM first unless Grace is zero.
type StopContainer struct {
	Container string
	ID        string
	Grace     time.Duration
	Why       string
	// Again says that it is to be started again however it ends.
	Again bool
}

// RemoveContainer forgets a dead container.
type RemoveContainer struct{ Container, ID string }

// StopSandbox ends whatever still runs in a sandbox and frees its network.
type StopSandbox struct{ ID, Why string }

// EndForeign ends and removes a sandbox that podd did not make, its containers
// first, each with the grace it was made with.
type EndForeign struct{ ID string }

// RemoveSandbox forgets a stopped sandbox with its containers.
type RemoveSandbox struct {
	ID string
	// Released says that podd stopped it itself, so that it need not be stopped
	// again: each time, containerd 2.x runs the network plugins.
	Released bool
}

// ReleaseVolumes unmounts and removes the volumes of a pod at rest.
type ReleaseVolumes struct{ UID types.UID }

// RemoveDir removes everything a gone pod left on disk: volumes, logs, memory.
type RemoveDir struct{ UID types.UID }

// Subjects: what an action is about.
func (a EnsureImage) Subject() string {
	if a.Successor {
		return "next image/" + a.Container
	}
	return "image/" + a.Container
}
func (a PrepareVolumes) Subject() string  { return "dir/" + string(a.UID) }
func (a UpdateVolumes) Subject() string   { return "dir/" + string(a.UID) }
func (CheckVolumes) Subject() string      { return "next volumes" }
func (a RunSandbox) Subject() string      { return "sandbox" }
func (a StartContainer) Subject() string  { return "container/" + a.Container }
func (a ResizeContainer) Subject() string { return "container/" + a.Container }
func (a ResizePod) Subject() string       { return "cgroup/" + a.SandboxID }
func (a StopContainer) Subject() string   { return "stop/" + a.ID }
func (a RemoveContainer) Subject() string { return "remove/" + a.ID }
func (a StopSandbox) Subject() string     { return "sandbox/" + a.ID }
func (a RemoveSandbox) Subject() string   { return "sandbox/" + a.ID }
func (a ReleaseVolumes) Subject() string  { return "dir/" + string(a.UID) }
func (a RemoveDir) Subject() string       { return "dir/" + string(a.UID) }

// Verbs: two actions of one subject and verb are the same undertaking.
func (EnsureImage) Verb() string     { return "pull" }
func (PrepareVolumes) Verb() string  { return "prepare" }
func (UpdateVolumes) Verb() string   { return "update" }
func (CheckVolumes) Verb() string    { return "check" }
func (RunSandbox) Verb() string      { return "run" }
func (StartContainer) Verb() string  { return "start" }
func (ResizeContainer) Verb() string { return "resize" }
func (ResizePod) Verb() string       { return "resize" }
func (StopContainer) Verb() string   { return "stop" }
func (RemoveContainer) Verb() string { return "remove" }
func (StopSandbox) Verb() string     { return "stop" }
func (RemoveSandbox) Verb() string   { return "remove" }
func (ReleaseVolumes) Verb() string  { return "release" }
func (RemoveDir) Verb() string       { return "remove" }

func (a EnsureImage) String() string {
	return fmt.Sprintf("get image %s for %s (%s)", a.Image, a.Container, a.Policy)
}
func (a PrepareVolumes) String() string { return "prepare volumes" }
func (UpdateVolumes) String() string    { return "update the files of volumes" }
func (CheckVolumes) String() string     { return "check the volumes of the edit" }
func (a RunSandbox) String() string     { return fmt.Sprintf("run sandbox, attempt %d", a.Attempt) }
func (a StartContainer) String() string {
	return fmt.Sprintf("start %s, attempt %d (%s)", a.Container, a.Attempt, a.Why)
}
func (a ResizeContainer) String() string { return "resize " + a.Container }
func (a ResizePod) String() string       { return "resize the pod's cgroup" }
func (a StopContainer) String() string {
	return fmt.Sprintf("stop %s within %s (%s)", a.Container, a.Grace.Round(time.Second), a.Why)
}
func (a RemoveContainer) String() string { return "remove dead container of " + a.Container }
func (a StopSandbox) String() string     { return "stop sandbox (" + a.Why + ")" }
func (a RemoveSandbox) String() string   { return "remove stopped sandbox" }
func (a ReleaseVolumes) String() string  { return "release volumes" }
func (a RemoveDir) String() string       { return "remove the pod's directory and logs" }

func (a EndForeign) Subject() string { return "sandbox/" + a.ID }

// Verb implements Action.
func (EndForeign) Verb() string { return "end" }

func (EndForeign) String() string { return "end the foreign pod, with its own grace" }

func (EndForeign) sealed()      {}
func (EnsureImage) sealed()     {}
func (PrepareVolumes) sealed()  {}
func (CheckVolumes) sealed()    {}
func (UpdateVolumes) sealed()   {}
func (RunSandbox) sealed()      {}
func (StartContainer) sealed()  {}
func (ResizeContainer) sealed() {}
func (ResizePod) sealed()       {}
func (StopContainer) sealed()   {}
func (RemoveContainer) sealed() {}
func (StopSandbox) sealed()     {}
func (RemoveSandbox) sealed()   {}
func (ReleaseVolumes) sealed()  {}
func (RemoveDir) sealed()       {}

// SameUndertaking says that one action is the other with newer reasons: what is
// under way for it serves.
func SameUndertaking(a, b Action) bool {
	if a.Subject() != b.Subject() || a.Verb() != b.Verb() {
		return false
	}
	switch a.(type) {
	case EnsureImage, CheckVolumes, Probe:
		return a == b
	}
	return true
}

// Cancellable says that an action may be given up half-way when no decision
// names it any more. The others are short or must come to their end. So must an
// attempt of a probe, and the command of a hook, which ends with its container at
// the latest: a client of containerd that leaves while its command is being
// started takes the pipes away that the shim waits for, 30 s long, and no exit of
// the container is told meanwhile.
func Cancellable(a Action) bool {
	switch a := a.(type) {
	case EnsureImage, PrepareVolumes, CheckVolumes, RunSandbox:
		return true
	case PostStart:
		return !a.Exec
	case PreStop:
		return !a.Exec
	}
	return false
}

// Observable tells whether an observation can differ by an action: one that was
// made before such an action ended says nothing any more.
func Observable(a Action) bool {
	switch a.(type) {
	case EnsureImage, PrepareVolumes, UpdateVolumes, CheckVolumes, ReleaseVolumes, RemoveDir, Probe, ReadMessage:
		return false
	}
	return true
}
