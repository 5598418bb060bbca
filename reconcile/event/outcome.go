package event

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/plan"
)

// An Outcome is the result of an action. A canceled action has no Outcome.
type Outcome struct {
	Subject
	Action plan.Action
	Err    error // nil if the action succeeded
	// Reason is the container waiting reason after a failed pull or start, or "".
	Reason string
	// ContactedRegistry reports whether a registry was contacted.
	ContactedRegistry bool
	// Pull describes a successful pull; nil if the image was already present.
	Pull *Pull
	// VolumeImages describes the images of image volumes that were pulled or were already on the node.
	VolumeImages []VolumeImage
	// FailedImage is the name of the image that could not be pulled, which may be the image of an
	// image volume; "" if it is unknown or the pull succeeded.
	FailedImage string
	// HookPlainHost is the host and port of a server that responded to an HTTPS hook in plain HTTP, and
	// that was then called over HTTP; "" otherwise.
	HookPlainHost string
	// StatusErr is the error of querying the status of a sandbox that RunSandbox has created; nil if
	// RunSandbox succeeded or failed for another reason.
	StatusErr error
	// BacksOff reports whether the next pull must wait for a back-off.
	BacksOff bool
}

// A Pull describes a successful image pull.
type Pull struct {
	Took         time.Duration // duration of the pull itself
	TookWithWait time.Duration // Took plus the time during which the pull waited for other pulls
	Size         uint64        // size of the image in bytes; 0 if unknown
}

// A VolumeImage is the image of an image volume.
type VolumeImage struct {
	Reference string // in the manifest
	Pull      *Pull  // nil if the image was already present
}

// ForPull returns the event for the start of a pull.
func ForPull(s Subject, a plan.EnsureImage) Event {
	return s.NewNormalEvent("Pulling", a.Container, fmt.Sprintf("Pulling image %q", a.Image))
}

// ForOutcome returns the events for the outcome of an action. Most actions cause events only if
// they fail.
func ForOutcome(o Outcome) []Event {
	switch a := o.Action.(type) {
	case plan.EnsureImage:
		return o.imageEvents(a)
	case plan.StartContainer:
		return o.startEvents(a)
	}
	if o.HookPlainHost != "" {
		return []Event{o.NewWarningEvent("LifecycleHTTPFallback", "", fmt.Sprintf("request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", o.HookPlainHost))}
	}
	if o.Err == nil {
		return nil
	}
	switch a := o.Action.(type) {
	case plan.PrepareVolumes, plan.UpdateVolumes, plan.CheckVolumes:
		return o.mountEvents(o.Err)
	case plan.RunSandbox:
		if o.StatusErr != nil {
			return []Event{o.NewWarningEvent("FailedPodSandBoxStatus", "", fmt.Sprintf("Unable to get pod sandbox status: %v", o.StatusErr))}
		}
		return []Event{o.NewWarningEvent("FailedCreatePodSandBox", "", fmt.Sprintf("Failed to create pod sandbox: %v", o.Err))}
	case plan.RunPostStart:
		// As in a kubelet, the event omits the output of the hook, because the output may
		// contain secrets.
		return []Event{o.NewWarningEvent("FailedPostStartHook", a.Container, "PostStartHook failed")}
	case plan.RunPreStop:
		return []Event{o.NewWarningEvent("FailedPreStopHook", a.Container, "PreStopHook failed")}
	case plan.RemoveContainer, plan.RemoveSandbox:
		return []Event{NewNodeEvent(v1.EventTypeWarning, "ContainerGCFailed", o.Err.Error(), o.At)}
	case plan.StopContainer, plan.StopSandbox:
		return []Event{o.NewWarningEvent("FailedKillPod", "", fmt.Sprintf("error killing pod: %v", o.Err))}
	}
	return nil
}

func (o Outcome) imageEvents(a plan.EnsureImage) []Event {
	var events []Event
	if o.Err == nil {
		for _, image := range append([]VolumeImage{{a.Image, o.Pull}}, o.VolumeImages...) {
			events = append(events, o.NewNormalEvent("Pulled", a.Container, pulledMessage(image.Reference, image.Pull)))
		}
		return events
	}
	name := cmp.Or(o.FailedImage, a.Image)
	addFailure := func(reason, message, waiting string) {
		events = append(events, o.NewWarningEvent(reason, a.Container, message), o.NewWarningEvent("Failed", a.Container, "Error: "+waiting))
	}
	switch o.Reason {
	case "ErrImageNeverPull":
		addFailure("ErrImageNeverPull", fmt.Sprintf("Container image %q is not present with pull policy of Never", name), o.Reason)
		return events
	case "InvalidImageName":
		addFailure("InspectFailed", fmt.Sprintf("Failed to apply default image tag %q: %v", name, o.Err), o.Reason)
		return events
	case "ImageInspectError":
		addFailure("InspectFailed", fmt.Sprintf("Failed to inspect image %q: %v", name, o.Err), o.Reason)
		return events
	}
	if o.ContactedRegistry || !o.BacksOff {
		addFailure("Failed", fmt.Sprintf("Failed to pull image %q: %v", name, o.Err), o.Reason)
	}
	if o.BacksOff {
		events = append(events, o.NewNormalEvent("BackOff", a.Container, fmt.Sprintf("Back-off pulling image %q", name)),
			o.NewWarningEvent("Failed", a.Container, "Error: ImagePullBackOff"))
	}
	return events
}

func pulledMessage(image string, p *Pull) string {
	if p == nil {
		return fmt.Sprintf("Container image %q already present on machine", image)
	}
	return fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
		image, p.Took.Truncate(time.Millisecond), p.TookWithWait.Truncate(time.Millisecond), p.Size)
}

// runContainerError is the waiting reason of a container that was created but failed to start.
const runContainerError = "RunContainerError"

func (o Outcome) startEvents(a plan.StartContainer) []Event {
	var events []Event
	// If CreatedID is set, the action continues an interrupted start, which has already recorded
	// the event Created.
	if (o.Err == nil || o.Reason == runContainerError) && a.CreatedID == "" {
		events = append(events, o.NewNormalEvent("Created", a.Container, "Created container: "+a.Container))
	}
	if o.Err != nil {
		return append(events, o.NewWarningEvent("Failed", a.Container, fmt.Sprintf("Error: %v", o.Err)))
	}
	return append(events, o.NewNormalEvent("Started", a.Container, "Started container "+a.Container))
}

// A mountFailure is an error that names the volume that failed.
type mountFailure interface {
	MountFailure() (volume, reason string)
}

// mountEvents returns an event for every volume that err names, or one event for all
// volumes if it names none.
func (s Subject) mountEvents(err error) []Event {
	events := s.mountFailureEvents(err)
	if len(events) == 0 {
		events = []Event{s.NewWarningEvent("FailedMount", "", fmt.Sprintf("Unable to attach or mount volumes: %v", err))}
	}
	return events
}

func (s Subject) mountFailureEvents(err error) []Event {
	switch e := err.(type) {
	case mountFailure:
		volume, reason := e.MountFailure()
		step := "MountVolume.SetUp"
		if m, ok := e.(interface{ MountStep() string }); ok {
			step = m.MountStep()
		}
		return []Event{s.NewVolumeFailedEvent(step, volume, reason)}
	case interface{ Unwrap() []error }:
		var events []Event
		for _, wrapped := range e.Unwrap() {
			events = append(events, s.mountFailureEvents(wrapped)...)
		}
		return events
	case interface{ Unwrap() error }:
		return s.mountFailureEvents(e.Unwrap())
	}
	return nil
}

// NewVolumeFailedEvent returns the event for a failed volume operation. step is the kubelet's
// name of the operation, such as "MountVolume.SetUp".
func (s Subject) NewVolumeFailedEvent(step, volume, message string) Event {
	reason := "FailedMount"
	switch {
	case strings.HasSuffix(step, ".NodeExpandVolume"):
		reason = "VolumeResizeFailed"
	case strings.HasPrefix(step, "MapVolume."):
		reason = "FailedMapVolume"
	}
	return s.NewWarningEvent(reason, "", fmt.Sprintf("%s failed for volume %q : %s", step, volume, message))
}

// NewGroupProgressEvent returns the event for a volume whose files get another group, which takes long.
// path is the path of the volume, and visitedCount is the number of visited files. isFirst is set
// for the first event of the change.
func (s Subject) NewGroupProgressEvent(path string, isFirst bool, visitedCount int64) Event {
	message := fmt.Sprintf("Setting volume ownership for %s, processed %d files.", path, visitedCount)
	if isFirst {
		message = fmt.Sprintf("Setting volume ownership for %s is taking longer than expected, consider using OnRootMismatch (fsGroupChangePolicy)", path)
	}
	return s.NewWarningEvent("VolumePermissionChangeInProgress", "", message)
}

// ForProbe returns the event for a probe attempt that failed, could not be carried out,
// or passed with a warning.
func ForProbe(s Subject, a plan.RunProbe, o plan.ProbeResult, isWarning bool) []Event {
	kind := map[plan.ProbeKind]string{plan.StartupProbe: "Startup", plan.LivenessProbe: "Liveness", plan.ReadinessProbe: "Readiness"}[a.Kind]
	switch {
	case o.Errored:
		return []Event{s.NewWarningEvent("Unhealthy", a.Container, fmt.Sprintf("%s probe errored and resulted in unknown state: %s", kind, o.Message))}
	case !o.Passed:
		return []Event{s.NewWarningEvent("Unhealthy", a.Container, fmt.Sprintf("%s probe failed: %s", kind, o.Message))}
	case isWarning:
		return []Event{s.NewWarningEvent("ProbeWarning", a.Container, fmt.Sprintf("%s probe warning: %s", kind, o.Message))}
	}
	return nil
}
