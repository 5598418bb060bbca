// Package result defines the results of actions. An effect returns a Result, and the worker
// applies it to its state. An action that returns more than an error has its own type of
// Value.
package result

import (
	"time"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/runtime"
)

// A Result describes how an action ended.
type Result struct {
	Action plan.Action
	Began  time.Time
	Ended  time.Time
	// Version is the version that the action was for, with its allocated sizes; nil if there is
	// none. Refs contains the objects that Version refers to, with the content that the action
	// used.
	Version *manifest.Pod
	Refs    *refs.Resolved

	Err      error
	Canceled bool   // whether Err is set because the worker canceled the action
	Warning  string // a problem that did not make the action fail
	// Value has a type that depends on the action, such as EnsuredImage. It is nil for actions
	// that return only an error. Some fields of Value may be set even if Err is set.
	Value Value
}

// IsFor reports whether the action was for version p. p may be nil.
func (r Result) IsFor(p *manifest.Pod) bool {
	return p != nil && r.Version != nil && r.Version.UID == p.UID && r.Version.Hash == p.Hash
}

// A Value is the part of an action's result that depends on the type of the action.
type Value interface{ isValue() }

// An Image is an image that is present on the node.
type Image struct {
	// Ref is the runtime's reference, from which containers are created.
	Ref string
	// Warning is why the image may differ from the image that the pull policy requires; "" if
	// it does not differ.
	Warning string
	// User is the user that the image runs as; nil if the user was not queried.
	User *runtime.ImageUser
	// Pull describes how the image was pulled; nil if it was present.
	Pull *event.Pull
}

// EnsuredImage is the Value of plan.EnsureImage.
type EnsuredImage struct {
	Image
	ContactedRegistry bool // whether a registry was contacted
	// VolumeImages describes the images of the image volumes that the container mounts.
	VolumeImages []event.VolumeImage
}

// WrittenVolumes is the Value of plan.PrepareVolumes and plan.UpdateVolumes.
type WrittenVolumes struct {
	// FilesDigest identifies the content that was written. It is a value of
	// refs.Resolved.FilesDigest.
	FilesDigest string
	// Attempts contains the lowest free attempt number of each container that has logs. It
	// is nil for plan.UpdateVolumes.
	Attempts map[string]uint32
}

// CreatedSandbox is the Value of plan.RunSandbox.
type CreatedSandbox struct {
	Sandbox *runtime.Sandbox
	// Others contains foreign sandboxes of the same name, listed after Sandbox was created.
	Others []runtime.Sandbox
	// Call is the last call of RunPodSandbox; nil if there was none.
	Call *Call
}

// A Call is a call of the runtime that has returned.
type Call struct {
	Took time.Duration
	Err  error
}

// StartedContainer is the Value of plan.StartContainer.
type StartedContainer struct {
	Container *runtime.Container // nil if the container was not created, or its status is unknown
}

// StoppedContainer is the Value of plan.StopContainer.
type StoppedContainer struct {
	Container *runtime.Container // nil if the runtime reports that the container does not exist
}

// StoppedSandbox is the Value of plan.StopSandbox.
type StoppedSandbox struct {
	Containers []runtime.Container // exited containers on which the phase of the pod may depend
}

// KilledProcesses is the Value of plan.KillProcesses.
type KilledProcesses struct {
	Found bool // whether the cgroup of the pod contained a cgroup of one of its containers
}

// ProbeAttempt is the Value of plan.RunProbe.
type ProbeAttempt struct {
	Passed bool
	// IsWarning reports whether the attempt passed with the warning in Message.
	IsWarning bool
	// Message is one line for users.
	Message string
}

// CalledHook is the Value of plan.RunPostStart and plan.RunPreStop.
type CalledHook struct {
	// PlainHost is the host and port of a server that was called over HTTP, because it responded to
	// the HTTPS request of the hook in plain HTTP; "" otherwise.
	PlainHost string
}

// TerminationMessage is the Value of plan.ReadMessage.
type TerminationMessage struct{ Text string }

func (EnsuredImage) isValue()       {}
func (WrittenVolumes) isValue()     {}
func (CreatedSandbox) isValue()     {}
func (StartedContainer) isValue()   {}
func (StoppedContainer) isValue()   {}
func (StoppedSandbox) isValue()     {}
func (KilledProcesses) isValue()    {}
func (ProbeAttempt) isValue()       {}
func (CalledHook) isValue()         {}
func (TerminationMessage) isValue() {}
