package event

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/plan"
)

// Outcome is what came of an action. One that was given up is none.
type Outcome struct {
	Subject
	Action plan.Action
	Err    error // nil: it was done
	// Reason is the container waiting reason of a failed pull or start; "": none.
	Reason string
	// Tried says that a registry was asked, Pull how a pull went that succeeded,
	// nil where the image was there; Later that the next try has to wait.
	Tried bool
	Pull  *Pull
	Later bool
}

// Pull is how an image was fetched.
type Pull struct {
	Took   time.Duration // without waiting for others
	Waited time.Duration // with it
	Size   uint64        // of the image, in bytes; 0: not known
}

// Pulling is that a container's image begins to be fetched.
func Pulling(s Subject, a plan.EnsureImage) Event {
	return s.Normal("Pulling", a.Container, fmt.Sprintf("Pulling image %q", a.Image))
}

// Did tells what came of an action; of most there is nothing to tell but failure.
func Did(o Outcome) []Event {
	switch a := o.Action.(type) {
	case plan.EnsureImage:
		return o.image(a)
	case plan.StartContainer:
		return o.start(a)
	}
	if o.Err == nil {
		return nil
	}
	switch a := o.Action.(type) {
	case plan.PrepareVolumes, plan.UpdateVolumes, plan.CheckVolumes:
		return o.mounts(o.Err)
	case plan.RunSandbox:
		return []Event{o.Warning("FailedCreatePodSandBox", "", fmt.Sprintf("Failed to create pod sandbox: %v", o.Err))}
	case plan.PostStart:
		// What hooks say may be secret: a kubelet tells as little.
		return []Event{o.Warning("FailedPostStartHook", a.Container, "PostStartHook failed")}
	case plan.PreStop:
		return []Event{o.Warning("FailedPreStopHook", a.Container, "PreStopHook failed")}
	case plan.RemoveContainer, plan.RemoveSandbox:
		return []Event{Node(v1.EventTypeWarning, "ContainerGCFailed", o.Err.Error(), o.At)}
	case plan.StopContainer, plan.StopSandbox:
		return []Event{o.Warning("FailedKillPod", "", fmt.Sprintf("error killing pod: %v", o.Err))}
	}
	return nil
}

func (o Outcome) image(a plan.EnsureImage) []Event {
	if o.Err == nil {
		return []Event{o.Normal("Pulled", a.Container, pulled(a.Image, o.Pull))}
	}
	var all []Event
	failed := func(reason, message, waits string) {
		all = append(all, o.Warning(reason, a.Container, message), o.Warning("Failed", a.Container, "Error: "+waits))
	}
	switch o.Reason {
	case "ErrImageNeverPull":
		failed(o.Reason, fmt.Sprintf("Container image %q is not present with pull policy of Never", a.Image), o.Reason)
		return all
	case "InvalidImageName":
		failed("InspectFailed", fmt.Sprintf("Failed to apply default image tag %q: %v", a.Image, o.Err), o.Reason)
		return all
	case "ImageInspectError":
		failed("InspectFailed", fmt.Sprintf("Failed to inspect image %q: %v", a.Image, o.Err), o.Reason)
		return all
	}
	if o.Tried || !o.Later {
		failed("Failed", fmt.Sprintf("Failed to pull image %q: %v", a.Image, o.Err), o.Reason)
	}
	if o.Later {
		all = append(all, o.Normal("BackOff", a.Container, fmt.Sprintf("Back-off pulling image %q", a.Image)),
			o.Warning("Failed", a.Container, "Error: ImagePullBackOff"))
	}
	return all
}

func pulled(image string, p *Pull) string {
	if p == nil {
		return fmt.Sprintf("Container image %q already present on machine", image)
	}
	return fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
		image, p.Took.Truncate(time.Millisecond), p.Waited.Truncate(time.Millisecond), p.Size)
}

// runFailed is the waiting reason of a container that was made and not started.
const runFailed = "RunContainerError"

func (o Outcome) start(a plan.StartContainer) []Event {
	var all []Event
	// What an interrupted start left behind was told of when it was made.
	if (o.Err == nil || o.Reason == runFailed) && a.CreatedID == "" {
		all = append(all, o.Normal("Created", a.Container, "Created container: "+a.Container))
	}
	if o.Err != nil {
		return append(all, o.Warning("Failed", a.Container, fmt.Sprintf("Error: %v", o.Err)))
	}
	return append(all, o.Normal("Started", a.Container, "Started container "+a.Container))
}

// mountFailure is an error that knows the volume it is about.
type mountFailure interface {
	MountFailure() (volume, why string)
}

// mounts has an event for every volume that an error speaks of.
func (s Subject) mounts(err error) []Event {
	all := s.eachMount(err)
	if len(all) == 0 {
		all = []Event{s.Warning("FailedMount", "", fmt.Sprintf("Unable to attach or mount volumes: %v", err))}
	}
	return all
}

func (s Subject) eachMount(err error) []Event {
	switch e := err.(type) {
	case mountFailure:
		volume, why := e.MountFailure()
		step := "MountVolume.SetUp"
		if of, is := e.(interface{ MountStep() string }); is {
			step = of.MountStep()
		}
		return []Event{s.VolumeFailed(step, volume, why)}
	case interface{ Unwrap() []error }:
		var all []Event
		for _, each := range e.Unwrap() {
			all = append(all, s.eachMount(each)...)
		}
		return all
	case interface{ Unwrap() error }:
		return s.eachMount(e.Unwrap())
	}
	return nil
}

// VolumeFailed is that a step of a kubelet's failed for a volume.
func (s Subject) VolumeFailed(step, volume, why string) Event {
	reason := "FailedMount"
	switch {
	case strings.HasSuffix(step, ".NodeExpandVolume"):
		reason = "VolumeResizeFailed"
	case strings.HasPrefix(step, "MapVolume."):
		reason = "FailedMapVolume"
	}
	return s.Warning(reason, "", fmt.Sprintf("%s failed for volume %q : %s", step, volume, why))
}

// Probed tells of an attempt of a probe that did not pass, or only just.
func Probed(s Subject, a plan.Probe, o plan.Outcome, warning bool) []Event {
	kind := map[plan.ProbeKind]string{plan.Startup: "Startup", plan.Liveness: "Liveness", plan.Readiness: "Readiness"}[a.Kind]
	switch {
	case o.Errored:
		return []Event{s.Warning("Unhealthy", a.Container, fmt.Sprintf("%s probe errored and resulted in unknown state: %s", kind, o.Message))}
	case !o.Passed:
		return []Event{s.Warning("Unhealthy", a.Container, fmt.Sprintf("%s probe failed: %s", kind, o.Message))}
	case warning:
		return []Event{s.Warning("ProbeWarning", a.Container, fmt.Sprintf("%s probe warning: %s", kind, o.Message))}
	}
	return nil
}
