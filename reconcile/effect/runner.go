package effect

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/reconcile/render"
	"podd/reconcile/result"
	"podd/runtime"
)

// A Runner carries out the actions of plans. It is safe for concurrent use.
type Runner struct {
	Runtime        Runtime
	Images         Images
	Disk           Disk
	LogsAndCgroups LogsAndCgroups
	Gate           *Gate
	// KillShim kills the shim process of a stopped sandbox that the runtime cannot remove. found
	// reports whether a shim process existed. If KillShim is nil, no shim is killed.
	KillShim func(sandboxID string) (found bool, err error)
	// MakeCgroup creates a pod's cgroup and sets its limits. If MakeCgroup is nil, the runtime
	// creates the cgroup, without limits.
	MakeCgroup func(render.Cgroup) error
	// MeasureCgroupMemory returns the memory usage and the memory limit of a pod's cgroup in bytes.
	// The limit is 0 if there is none. If MeasureCgroupMemory is nil, the sum of the memory of the
	// containers is used instead.
	MeasureCgroupMemory func(render.Cgroup) (used, limit int64, err error)
	// UnkillableProcesses returns the processes of a pod that SIGKILL cannot terminate now, because
	// they are in an uninterruptible wait in the kernel. If UnkillableProcesses is nil, the errors
	// of stops do not mention such processes.
	UnkillableProcesses func(types.UID) []string
	// Devices provides the devices of device plugins; nil means that there are none.
	Devices Devices
	// DNS returns the current DNS configuration of the node. If DNS is nil, the configuration in
	// render.Node is used.
	DNS func() (render.DNS, error)
	// IsLocal reports whether the host has the address ip now. If IsLocal is nil, podd assumes that
	// the host has all addresses of the node.
	IsLocal func(ip string) bool
	// KeepsEarlierLogs reports whether the logs of all exited containers that the runtime lists are
	// kept. Otherwise only the logs of the last exited container of each name are kept.
	KeepsEarlierLogs bool
	// OnDone receives the outcome of every effect, on the goroutine of that effect. It must
	// not block. It may be nil.
	OnDone func(Outcome)
}

// Do carries out action a and returns when the action has ended. If ctx is canceled, Do returns
// soon, unless a file system of the host hangs.
func (e *Runner) Do(ctx context.Context, a plan.Action, s Input) result.Result {
	r := result.Result{Action: a, Version: s.Desired, Began: time.Now()}
	e.carryOut(ctx, a, s, &r)
	r.Canceled = errors.Is(r.Err, context.Canceled)
	r.Refs, r.Ended = s.refsFor(r.Version), time.Now()
	if e.OnDone != nil {
		e.OnDone(newOutcome(s.Key, &r))
	}
	return r
}

// carryOut carries out action a. It sets the value, the warning and the error of r, and r.Version if the
// action concerns another version than the desired one.
func (e *Runner) carryOut(ctx context.Context, a plan.Action, s Input, r *result.Result) {
	switch a := a.(type) {
	case plan.EnsureImage:
		if a.ForSuccessor {
			r.Version = s.Successor
		}
		var image result.EnsuredImage
		image, r.Err = e.ensureImage(ctx, s, r.Version, a)
		r.Value, r.Warning = image, image.Warning
	case plan.PrepareVolumes:
		volumes := result.WrittenVolumes{FilesDigest: s.filesDigest()}
		volumes.Attempts, r.Err = e.prepareVolumes(ctx, s)
		r.Value = volumes
	case plan.UpdateVolumes:
		r.Value = result.WrittenVolumes{FilesDigest: s.filesDigest()}
		_, r.Err = e.Disk.Prepare(ctx, s.Desired, s.volumes(s.Desired))
	case plan.CheckVolumes:
		r.Err = e.checkVolumes(ctx, s, s.checkedVersion(a))
	case plan.RunSandbox:
		var sandbox result.CreatedSandbox
		sandbox.Sandbox, sandbox.Others, r.Err = e.runSandbox(ctx, s, a)
		r.Value = sandbox
	case plan.StartContainer:
		var started result.StartedContainer
		started.Container, r.Warning, r.Err = e.startContainer(ctx, s, a)
		r.Value = started
	case plan.ResizeContainer:
		r.Err = e.resizeContainer(ctx, s, a)
	case plan.ResizePod:
		r.Err = e.resizePod(s)
	case plan.StopContainer:
		var stopped result.StoppedContainer
		stopped.Container, r.Err = e.stopContainer(ctx, s.Observed, a)
		r.Value = stopped
	case plan.RunProbe:
		r.Version = s.versionOf(a.ID)
		var attempt probe.Result
		attempt, r.Err = e.probe(ctx, s, r.Version, a)
		r.Value = result.ProbeAttempt(attempt)
	case plan.RunPostStart:
		r.Value, r.Err = e.postStart(ctx, s, a)
	case plan.RunPreStop:
		r.Value, r.Err = e.preStop(ctx, s, a)
	case plan.ReadMessage:
		r.Value = result.TerminationMessage{Text: e.readTerminationMessage(ctx, s, a)}
	case plan.RemoveContainer:
		r.Err = e.removeContainer(ctx, s.Observed, a.ID)
	case plan.StopSandbox:
		var stopped result.StoppedSandbox
		stopped.Containers, r.Err = e.stopSandbox(ctx, s, a.ID)
		r.Value = stopped
	case plan.StopForeign:
		r.Err = e.stopForeign(ctx, a.ID)
	case plan.RemoveSandbox:
		r.Err = e.removeSandbox(ctx, s.Observed, a.ID, a.Released)
	case plan.ReleaseResources:
		r.Err = errors.Join(e.Disk.Release(ctx, a.UID), e.LogsAndCgroups.RemoveCgroup(ctx, a.UID))
	case plan.RemoveDir:
		// The directory is removed last, because only the journal in it contains the name
		// of the pod to which the logs, links and cgroups belong.
		if r.Err = e.LogsAndCgroups.Remove(ctx, s.Key, a.UID); r.Err == nil {
			r.Err = e.Disk.Remove(ctx, a.UID)
		}
	}
}

// ensureImage pulls the image of a container and the images of the image volumes that the container
// mounts, if necessary. It uses the pull secrets of version p. As in the kubelet, a container whose
// image volume cannot be pulled waits with the reasons of a failed image pull.
func (e *Runner) ensureImage(ctx context.Context, s Input, p *manifest.Pod, a plan.EnsureImage) (result.EnsuredImage, error) {
	hasContacted := false
	onPull := func(image string) {
		hasContacted = true
		a := a
		a.Image = image
		s.OnPull(ctx, a, event.ForPull(event.NewSubject(p, time.Now()), a))
	}
	secrets, missingSuffix := s.pullSecrets(p)
	image, err := e.Images.Ensure(ctx, newImageRequest(p, a.Image, a.Policy, secrets), func() { onPull(a.Image) })
	if err != nil {
		if missingSuffix != "" {
			err = fmt.Errorf("%w%s", err, missingSuffix)
		}
		return result.EnsuredImage{ContactedRegistry: hasContacted}, err
	}
	r := result.EnsuredImage{Image: image, ContactedRegistry: hasContacted}
	hasContacted = false
	c, _, _ := plan.FindContainer(p.Object, a.Container)
	volumes, err := e.pullVolumeImages(ctx, s, p, c, false, onPull)
	if err != nil {
		return result.EnsuredImage{ContactedRegistry: hasContacted}, err
	}
	for _, v := range volumes {
		r.VolumeImages = append(r.VolumeImages, event.VolumeImage{Reference: v.reference, Pull: v.Pull})
	}
	return r, nil
}

// newImageRequest returns the request for an image of version p.
func newImageRequest(p *manifest.Pod, image, policy string, secrets []*v1.Secret) ImageRequest {
	r := ImageRequest{Image: image, Policy: policy, Secrets: secrets, Source: p.Origin.Source, Pod: p.ManifestKey(), PodUID: p.UID}
	if p.Traits.HasRefsFromServer {
		r.ServiceAccount = p.Object.Spec.ServiceAccountName
	}
	return r
}

// prepareVolumes creates the volumes of the desired version. It returns the lowest free attempt number
// of each container that has logs.
func (e *Runner) prepareVolumes(ctx context.Context, s Input) (attempts map[string]uint32, err error) {
	if err := render.CheckMounts(s.Desired, *s.Node); err != nil {
		return nil, err
	}
	if _, err := e.Disk.Prepare(ctx, s.Desired, s.volumes(s.Desired)); err != nil {
		return nil, err
	}
	return e.LogsAndCgroups.NextAttempts(s.Desired)
}

// exitQueryTimeout is how long an effect that stops a sandbox waits for the exit codes of its
// containers. A later observation reports the exit codes that are missing after this time.
const exitQueryTimeout = 2 * time.Second

// stopSandbox kills the containers of the sandbox with ID id, and stops the sandbox. If exit codes
// are needed (needsExitCodes), containers contains the statuses of the stopped containers that the
// runtime reports within exitQueryTimeout.
func (e *Runner) stopSandbox(ctx context.Context, s Input, id string) (containers []runtime.Container, err error) {
	if err := e.killContainers(ctx, s.Observed, id); err != nil {
		return nil, err
	}
	if err := e.Runtime.StopPodSandbox(ctx, id); err != nil {
		return nil, err
	}
	queryCtx, cancel := context.WithTimeout(ctx, exitQueryTimeout)
	defer cancel()
	for i := range s.Observed {
		inc := &s.Observed[i]
		if inc.ID != id || !s.needsExitCodes(inc) {
			continue
		}
		for _, c := range inc.Containers {
			if c.State == runtime.Exited || c.State == runtime.ExitCodeUnknown {
				continue
			}
			if status, err := e.Runtime.ContainerStatus(queryCtx, c.ID); err == nil {
				containers = append(containers, status)
			}
		}
	}
	return containers, nil
}

// needsExitCodes reports whether the phase of the pod may depend on the exit codes of incarnation
// inc.
func (s Input) needsExitCodes(inc *runtime.Incarnation) bool {
	if s.Desired != nil {
		return inc.UID == s.Desired.UID
	}
	return s.Previous != nil && s.Previous.Traits.HasStateAtSource && inc.UID == s.Previous.UID
}

// removeSandbox removes a sandbox. If released is false, it stops the sandbox first, because the
// removal of a sandbox that exited by itself does not free its addresses.
func (e *Runner) removeSandbox(ctx context.Context, observed []runtime.Incarnation, id string, released bool) error {
	if !released {
		if err := e.killContainers(ctx, observed, id); err != nil {
			return err
		}
		if err := e.Runtime.StopPodSandbox(ctx, id); err != nil {
			return err
		}
	}
	err := e.Runtime.RemovePodSandbox(ctx, id)
	if errors.Is(err, runtime.ErrTaskLost) && e.KillShim != nil {
		// RemovePodSandbox has failed with ErrTaskLost. After the shim is killed and the runtime
		// has cleaned up, the next attempt succeeds.
		_, killErr := e.KillShim(id)
		err = errors.Join(err, killErr)
	}
	return err
}
