package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// An Action describes one effect. At most one action of each Subject is in progress. String
// is for users and logs; it never prints env, headers or credentials.
type Action interface {
	Subject() string
	Verb() string
	String() string
	sealed()
}

// EnsureImage makes a container's image present according to its pull policy.
type EnsureImage struct {
	Container string
	Image     string
	Policy    string
	// Successor reports that the image is for the version that will replace the current
	// one.
	Successor bool
}

// PrepareVolumes creates the pod's directory and volumes. It is idempotent.
type PrepareVolumes struct{ UID types.UID }

// UpdateVolumes writes the current content of a running pod's objects to its volumes. It is
// idempotent.
type UpdateVolumes struct {
	UID   types.UID
	Files string // see Objects.Files
}

// CheckVolumes checks without changes whether the volumes and profile files of a newer
// version are available.
type CheckVolumes struct {
	UID  types.UID
	Hash string
}

// RunSandbox creates and starts the pod's sandbox.
type RunSandbox struct{ Attempt uint32 }

// StartContainer creates and starts a container, or starts the one with CreatedID that an
// interrupted start has created.
type StartContainer struct {
	Container string
	SandboxID string
	// Attempt is the attempt number, which is part of the container's name in the runtime,
	// and Restarts the restart count.
	Attempt, Restarts uint32
	Backoff           int
	// ImageRef is the image to create the container from, and ImageUser the user of that
	// image: a later start must not run as another user than the first (CVE-2019-11245).
	// nil: unknown.
	ImageRef  string
	ImageUser *runtime.ImageUser
	// CreatedID is the container that an interrupted start has created; "" if there is
	// none.
	CreatedID string
	// TargetID is the container that shares its process namespace; "" if none does.
	TargetID string
	// PostStart reports that the postStart hook must run after the start.
	PostStart bool
	Why       string
}

// ResizeContainer gives a running container its size in Desired. It is idempotent.
type ResizeContainer struct{ Container, ID string }

// ResizePod gives the pod's cgroup the size of Desired. It is idempotent.
type ResizePod struct{ SandboxID string }

// StopContainer stops a container, with SIGTERM first unless Grace is zero.
type StopContainer struct {
	Container string
	ID        string
	Grace     time.Duration
	Why       string
	// Again reports that the container must be restarted after it has exited.
	Again bool
}

// RemoveContainer removes an exited container.
type RemoveContainer struct{ Container, ID string }

// StopSandbox stops all processes of a sandbox and releases its network.
type StopSandbox struct{ ID, Why string }

// StopForeign stops and removes a sandbox that podd did not create. It stops the containers
// first, each with the grace period recorded at its creation.
type StopForeign struct{ ID string }

// RemoveSandbox removes a stopped sandbox with its containers.
type RemoveSandbox struct {
	ID string
	// Released reports that podd has stopped the sandbox, so it need not be stopped again.
	// containerd 2.x runs the network plugins at each stop.
	Released bool
}

// ReleaseVolumes unmounts and removes the volumes of a finished pod.
type ReleaseVolumes struct{ UID types.UID }

// RemoveDir removes all files of a deleted pod: volumes, logs, journal.
type RemoveDir struct{ UID types.UID }

// Subject returns the object that an action changes.
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

// Verb returns the operation. Two actions with equal subject and verb are the same
// operation.
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
	return fmt.Sprintf("pull image %s for %s (%s)", a.Image, a.Container, a.Policy)
}
func (a PrepareVolumes) String() string { return "prepare volumes" }
func (UpdateVolumes) String() string    { return "update the files of volumes" }
func (CheckVolumes) String() string     { return "check the volumes of the new version" }
func (a RunSandbox) String() string     { return fmt.Sprintf("run sandbox, attempt %d", a.Attempt) }
func (a StartContainer) String() string {
	return fmt.Sprintf("start %s, attempt %d (%s)", a.Container, a.Attempt, a.Why)
}
func (a ResizeContainer) String() string { return "resize " + a.Container }
func (a ResizePod) String() string       { return "resize the pod's cgroup" }
func (a StopContainer) String() string {
	return fmt.Sprintf("stop %s within %s (%s)", a.Container, a.Grace.Round(time.Second), a.Why)
}
func (a RemoveContainer) String() string { return "remove exited container of " + a.Container }
func (a StopSandbox) String() string     { return "stop sandbox (" + a.Why + ")" }
func (a RemoveSandbox) String() string   { return "remove stopped sandbox" }
func (a ReleaseVolumes) String() string  { return "release volumes" }
func (a RemoveDir) String() string       { return "remove the pod's directory and logs" }

func (a StopForeign) Subject() string { return "sandbox/" + a.ID }

// Verb implements Action.
func (StopForeign) Verb() string { return "end" }

func (StopForeign) String() string { return "stop the foreign pod within its own grace period" }

func (StopForeign) sealed()     {}
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

// EqualOperation reports whether a and b have the same effect, so that b need not replace a
// if a is in progress. For example, their reasons may differ.
func EqualOperation(a, b Action) bool {
	if a.Subject() != b.Subject() || a.Verb() != b.Verb() {
		return false
	}
	switch a.(type) {
	case EnsureImage, CheckVolumes, Probe:
		return a == b
	}
	return true
}

// Cancellable reports whether an action is canceled when no decision names it any more.
// Other actions are short or must complete. An attempt of a probe and the command of a hook
// must complete too (the command ends with its container at the latest): if a client of
// containerd disconnects while its command is being started, it removes the pipes for which
// the shim waits up to 30 s, and meanwhile no exit of the container is reported.
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

// Observable reports whether an action can change observations. An observation that was
// older than the end of such an action is out of date.
func Observable(a Action) bool {
	switch a.(type) {
	case EnsureImage, PrepareVolumes, UpdateVolumes, CheckVolumes, ReleaseVolumes, RemoveDir, Probe, ReadMessage:
		return false
	}
	return true
}
