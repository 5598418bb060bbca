package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// An Action describes one effect.
type Action interface {
	// Subject returns the object that the action changes. At most one action of each subject
	// is in progress.
	Subject() string
	// Verb returns the operation. Actions with equal subjects and verbs are the same operation.
	Verb() string
	// String returns a description for users and logs. It contains no environment variables,
	// headers or credentials.
	String() string
	sealed()
}

// EnsureImage ensures that a container's image is present as the pull policy requires.
type EnsureImage struct {
	Container string
	Image     string
	Policy    string
	// ForSuccessor reports whether the image is for Input.Successor.
	ForSuccessor bool
}

// PrepareVolumes creates the directory and the volumes of the pod with this UID. The action is
// idempotent.
type PrepareVolumes struct{ UID types.UID }

// UpdateVolumes writes the current content of ConfigMaps and Secrets to the volumes of a running
// pod. It is idempotent.
type UpdateVolumes struct {
	UID         types.UID
	FilesDigest string // see ReferencedObjects.FilesDigest
}

// CheckVolumes checks whether the volumes and seccomp profiles of a newer version are available. It
// changes nothing.
type CheckVolumes struct {
	UID  types.UID
	Hash string
}

// RunSandbox creates and starts the sandbox of the desired version.
type RunSandbox struct{ Attempt uint32 }

// StartContainer creates and starts a container. If CreatedID is set, the container with that ID
// already exists, and the action only starts it.
type StartContainer struct {
	Container string
	SandboxID string
	// Attempt is the attempt number, which is part of the container's name in the runtime. Restarts
	// is the restart count.
	Attempt, Restarts uint32
	Crashes           int // number of consecutive crashes before this start
	// PodRestarts is the number of times that all containers of the pod were restarted together
	// before this start.
	PodRestarts uint32
	// ImageRef is the image from which the container is created. ImageUser is the user of that
	// image, or nil if the user is unknown. If the manifest sets no user, the container runs as
	// ImageUser, so that later starts run as the same user as the first start (CVE-2019-11245).
	ImageRef  string
	ImageUser *runtime.ImageUser
	// CreatedID is the ID of the container that an interrupted start has created; "" if there
	// is none.
	CreatedID string
	// TargetID is the ID of the container whose process namespace an ephemeral container joins; ""
	// if there is none.
	TargetID string
	// RunsPostStart reports whether the postStart hook must run after the start.
	RunsPostStart bool
	Why           string
}

// ResizeContainer changes the resources of a running container to its size in Input.Desired. It is
// idempotent.
type ResizeContainer struct{ Container, ID string }

// ResizePod changes the limits of the pod's cgroup to the size of Input.Desired. It is idempotent.
type ResizePod struct{ SandboxID string }

// StopContainer stops a container, with SIGTERM first unless Grace is zero.
type StopContainer struct {
	Container string
	ID        string
	Grace     time.Duration
	Why       string
	// WillRestart reports whether the container is restarted after it has exited.
	WillRestart bool
}

// RemoveContainer removes an exited container.
type RemoveContainer struct{ Container, ID string }

// StopSandbox stops all processes of a sandbox and releases its network.
type StopSandbox struct{ ID, Why string }

// StopForeign stops and removes a sandbox that another agent created. It stops the containers
// first, each with the grace period that was recorded when the container was created.
type StopForeign struct{ ID string }

// RemoveSandbox removes a stopped sandbox with its containers.
type RemoveSandbox struct {
	ID string
	// Released reports whether podd has stopped the sandbox. If so, the sandbox is not stopped
	// again, because containerd 2.x runs the network plugins at each stop.
	Released bool
}

// ReleaseResources unmounts and removes the volumes of a finished pod, and removes its cgroup.
type ReleaseResources struct{ UID types.UID }

// RemoveDir removes the volumes, the logs and the journal of a deleted pod.
type RemoveDir struct{ UID types.UID }

// Subject implements Action.
func (a EnsureImage) Subject() string {
	if a.ForSuccessor {
		return "next image/" + a.Container
	}
	return "image/" + a.Container
}
func (a PrepareVolumes) Subject() string   { return "dir/" + string(a.UID) }
func (a UpdateVolumes) Subject() string    { return "dir/" + string(a.UID) }
func (CheckVolumes) Subject() string       { return "next volumes" }
func (a RunSandbox) Subject() string       { return "sandbox" }
func (a StartContainer) Subject() string   { return "container/" + a.Container }
func (a ResizeContainer) Subject() string  { return "container/" + a.Container }
func (a ResizePod) Subject() string        { return "cgroup/" + a.SandboxID }
func (a StopContainer) Subject() string    { return "stop/" + a.ID }
func (a RemoveContainer) Subject() string  { return "remove/" + a.ID }
func (a StopSandbox) Subject() string      { return "sandbox/" + a.ID }
func (a RemoveSandbox) Subject() string    { return "sandbox/" + a.ID }
func (a ReleaseResources) Subject() string { return "dir/" + string(a.UID) }
func (a RemoveDir) Subject() string        { return "dir/" + string(a.UID) }

// Verb implements Action.
func (EnsureImage) Verb() string      { return "pull" }
func (PrepareVolumes) Verb() string   { return "prepare" }
func (UpdateVolumes) Verb() string    { return "update" }
func (CheckVolumes) Verb() string     { return "check" }
func (RunSandbox) Verb() string       { return "run" }
func (StartContainer) Verb() string   { return "start" }
func (ResizeContainer) Verb() string  { return "resize" }
func (ResizePod) Verb() string        { return "resize" }
func (StopContainer) Verb() string    { return "stop" }
func (RemoveContainer) Verb() string  { return "remove" }
func (StopSandbox) Verb() string      { return "stop" }
func (RemoveSandbox) Verb() string    { return "remove" }
func (ReleaseResources) Verb() string { return "release" }
func (RemoveDir) Verb() string        { return "remove" }

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
func (a RemoveContainer) String() string  { return "remove exited container of " + a.Container }
func (a StopSandbox) String() string      { return "stop sandbox (" + a.Why + ")" }
func (a RemoveSandbox) String() string    { return "remove stopped sandbox" }
func (a ReleaseResources) String() string { return "release volumes and cgroup" }
func (a RemoveDir) String() string        { return "remove the pod's directory and logs" }

// Subject implements Action.
func (a StopForeign) Subject() string { return "sandbox/" + a.ID }

// Verb implements Action.
func (StopForeign) Verb() string { return "end" }

func (StopForeign) String() string { return "stop the foreign pod within its own grace period" }

func (StopForeign) sealed()      {}
func (EnsureImage) sealed()      {}
func (PrepareVolumes) sealed()   {}
func (CheckVolumes) sealed()     {}
func (UpdateVolumes) sealed()    {}
func (RunSandbox) sealed()       {}
func (StartContainer) sealed()   {}
func (ResizeContainer) sealed()  {}
func (ResizePod) sealed()        {}
func (StopContainer) sealed()    {}
func (RemoveContainer) sealed()  {}
func (StopSandbox) sealed()      {}
func (RemoveSandbox) sealed()    {}
func (ReleaseResources) sealed() {}
func (RemoveDir) sealed()        {}

// IsSameOperation reports whether a and b have the same effect, so that b need not replace a if a
// is in progress. Fields that do not change the effect, such as Why, may differ.
func IsSameOperation(a, b Action) bool {
	if a.Subject() != b.Subject() || a.Verb() != b.Verb() {
		return false
	}
	switch a.(type) {
	case EnsureImage, CheckVolumes, RunProbe:
		return a == b
	}
	return true
}

// IsCancellable reports whether an action is canceled when no decision contains it any more. Other
// actions are short or must complete.
//
// An attempt of a probe and the command of a hook must complete, because of containerd. If a client
// disconnects while containerd starts a command, containerd removes the pipes for which the shim
// waits. The shim waits for up to 30 s, and does not report the exit of the container during that
// time. A command that is not canceled ends at the latest when its container exits.
func IsCancellable(a Action) bool {
	switch a := a.(type) {
	case EnsureImage, PrepareVolumes, CheckVolumes, RunSandbox:
		return true
	case RunPostStart:
		return !a.IsExec
	case RunPreStop:
		return !a.IsExec
	}
	return false
}

// IsObservable reports whether an action can change what the runtime lists. An observation that was
// requested before the end of such an action is out of date.
func IsObservable(a Action) bool {
	switch a.(type) {
	case EnsureImage, PrepareVolumes, UpdateVolumes, CheckVolumes, ReleaseResources, RemoveDir, RunProbe, ReadMessage, KillProcesses, ReleaseVolumes:
		return false
	}
	return true
}
