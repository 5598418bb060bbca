package effect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile/device/allocation"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/result"
	"podd/reconcile/status"
	"podd/runtime"
)

// startContainer creates and starts a container. c is the container, even if startContainer returns
// an error. c is nil if the container was not created or its status is unknown. warning is the
// error of a failed step after the start, such as linking the log, or "" if no such step failed.
func (e *Runner) startContainer(ctx context.Context, s Input, a plan.StartContainer) (c *runtime.Container, warning string, err error) {
	var devices []render.DeviceGrant
	if a.CreatedID == "" {
		grants, done, err := e.prepareContainerDevices(ctx, s, a.Container)
		if err != nil {
			return nil, "", err
		}
		defer done()
		devices = grants
	}
	id, err := e.startWithRetry(ctx, s, a, devices)
	if id == "" {
		return nil, "", err
	}
	containerStatus, statusErr := e.queryStartedStatus(ctx, id)
	if statusErr == nil {
		// Set the ID of the sandbox, because the container status of CRI does not contain it.
		containerStatus.SandboxID = a.SandboxID
		c = &containerStatus
	}
	if err != nil {
		if isUnstartable(s, c, err) {
			c, err = e.removeUnstartable(ctx, s.Desired.UID, c, err)
		}
		return c, "", &result.StartError{Reason: "RunContainerError", Err: fmt.Errorf("starting container %s: %w", a.Container, err)}
	}
	if statusErr != nil {
		statusErr = fmt.Errorf("querying the status of started container %s: %w", a.Container, statusErr)
	}
	if err := errors.Join(statusErr, e.LogsAndCgroups.HandleStart(s.Desired, a.Container, id, a.Attempt, e.oldestKeptLog(s.Observed, a))); err != nil {
		warning = err.Error()
	}
	return c, warning, nil
}

// oldestKeptLog returns the lowest attempt number whose logs are kept when a has started a container.
// The logs of the attempt before a.Attempt are kept in any case.
func (e *Runner) oldestKeptLog(observed []runtime.Incarnation, a plan.StartContainer) uint32 {
	oldest := a.Attempt
	if !e.KeepsEarlierLogs {
		return oldest
	}
	for i := range observed {
		if observed[i].ID != a.SandboxID {
			continue
		}
		for _, c := range observed[i].Containers {
			if c.Name == a.Container {
				oldest = min(oldest, c.Attempt)
			}
		}
	}
	return oldest
}

// statusTimeout limits the query for the status of a container that was just started. If the
// runtime does not respond, the start counts as successful until the next observation. Without this
// timeout, a slow query could use up the grace period of a pod that is removed.
const statusTimeout = 2 * time.Second

// queryStartedStatus returns the status of a container that was just started, even if ctx was
// canceled.
func (e *Runner) queryStartedStatus(ctx context.Context, id string) (runtime.Container, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	return e.Runtime.ContainerStatus(ctx, id)
}

// isUnstartable reports whether container c must be removed after its start has failed with err.
// This is the case if c is still in the state Created, as with older versions of CRI-O.
// isUnstartable returns false if err allows another start of the same container, because the start
// was canceled or the runtime did not respond. It also returns false for an ephemeral container,
// which must not be created twice. c is nil if the status of the container is unknown.
func isUnstartable(s Input, c *runtime.Container, err error) bool {
	if c == nil || c.State != runtime.Created || errors.Is(err, context.Canceled) || errors.Is(err, runtime.ErrUnavailable) {
		return false
	}
	_, kind, _ := plan.FindContainer(s.Desired.Object, c.Name)
	return kind != plan.KindEphemeral
}

// removeUnstartable removes a container whose start failed with err, as the kubelet does, so that
// the next start creates another container. If it cannot remove the container, it returns the
// container, otherwise nil. The returned error includes err.
func (e *Runner) removeUnstartable(ctx context.Context, uid types.UID, c *runtime.Container, err error) (*runtime.Container, error) {
	removeErr := e.kill(ctx, uid, c) // killContainers explains why the container is killed first
	if removeErr == nil {
		removeErr = e.Runtime.RemoveContainer(ctx, c.ID)
	}
	if removeErr != nil {
		return c, fmt.Errorf("%w; podd then failed to remove the created container: %w", err, removeErr)
	}
	return nil, err
}

// startWithRetry creates and starts a container. It retries while the container's name is reserved.
// id is the ID of the container, even if startWithRetry returns an error. id is "" if no container
// was created.
func (e *Runner) startWithRetry(ctx context.Context, s Input, a plan.StartContainer, devices []render.DeviceGrant) (id string, err error) {
	var config *cri.ContainerConfig
	var sandbox *cri.PodSandboxConfig
	if a.CreatedID == "" {
		if config, sandbox, err = e.prepareContainerConfig(ctx, s, a, devices); err != nil {
			return "", err
		}
	}
	err = retryWhileNameReserved(ctx, func() (err error) {
		id, err = e.createAndStart(ctx, s, a, config, sandbox)
		return err
	})
	if id == "" {
		err = e.wrapCreateError(ctx, s, a, config, err)
	}
	return id, err
}

// prepareContainerConfig creates everything on the host that a container needs, and returns the
// configurations of the container and its sandbox. prepareContainerConfig may take a long time, for
// example if the server of a volume does not respond. Therefore it is called before the start
// occupies a slot of the Gate.
func (e *Runner) prepareContainerConfig(ctx context.Context, s Input, a plan.StartContainer, devices []render.DeviceGrant) (*cri.ContainerConfig, *cri.PodSandboxConfig, error) {
	sandbox, in, err := e.prepareContainerInput(ctx, s, a)
	if err != nil {
		return nil, nil, &result.StartError{Reason: "CreateContainerConfigError", Err: err}
	}
	in.Devices = devices
	config, err := render.Container(in)
	if err != nil {
		return nil, nil, &result.StartError{Reason: "CreateContainerConfigError", Err: err}
	}
	// As in the kubelet, a rejected resize does not prevent the start of a container that was stopped
	// to be resized. The resize of the pod, which follows, reports the rejection.
	rejected := new(*rejectedSizeError)
	if err := e.raiseCgroupLimits(ctx, s, a.SandboxID); err != nil && !errors.As(err, rejected) {
		return nil, nil, &result.StartError{Reason: "CreateContainerError", Err: err}
	}
	if err := e.LogsAndCgroups.MakeLogDirs(s.Desired, a.Container); err != nil {
		return nil, nil, &result.StartError{Reason: "CreateContainerConfigError", Err: err}
	}
	return config, sandbox, nil
}

// createAndStart starts a container. It creates the container first, unless an interrupted start
// has already created it. createAndStart waits for a slot of the Gate, and calls the runtime only
// if it can take the permit. id is the ID of the container, even if createAndStart returns an
// error. id is "" if no container was created.
func (e *Runner) createAndStart(ctx context.Context, s Input, a plan.StartContainer, config *cri.ContainerConfig, sandbox *cri.PodSandboxConfig) (id string, err error) {
	release, err := e.Gate.acquire(ctx, containerRank)
	if err != nil {
		return "", err
	}
	defer func() { release(err) }()
	if !s.Permit.Take() {
		return "", context.Canceled
	}
	startCtx, done := withDelayedCancel(ctx)
	defer done()
	if id = a.CreatedID; id == "" {
		id, err = e.Runtime.CreateContainer(startCtx, a.SandboxID, config, sandbox)
		if errors.Is(err, runtime.ErrNameReserved) {
			s.Permit.putBack() // no container was created, so that the next attempt can take the permit
		}
		if err != nil {
			return "", err
		}
		e.Images.EndRepair(a.ImageRef)
		for _, m := range config.Mounts {
			if m.Image != nil {
				e.Images.EndRepair(m.Image.Image)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return id, err
	}
	return id, e.Runtime.StartContainer(startCtx, id)
}

// wrapCreateError returns the error for a container that was not created from config because of err. If
// the image is missing, the returned error names the missing image instead of err. If the image or the
// image of a volume is damaged, wrapCreateError removes it, so that it is pulled again before the next
// start.
func (e *Runner) wrapCreateError(ctx context.Context, s Input, a plan.StartContainer, config *cri.ContainerConfig, err error) error {
	if errors.Is(err, runtime.ErrImageDamaged) {
		c, _, _ := plan.FindContainer(s.Desired.Object, a.Container)
		err = e.Images.Repair(ctx, c.Image, a.ImageRef, string(c.ImagePullPolicy), err)
	}
	if errors.Is(err, runtime.ErrVolumeImageDamaged) {
		err = e.repairVolumeImage(ctx, s, config, err)
	}
	if errors.Is(err, runtime.ErrNotFound) {
		// Find out whether the image or the sandbox is missing, because both cause ErrNotFound.
		if _, imageErr := e.queryImageUser(ctx, a); imageErr != nil {
			return &result.StartError{Reason: "CreateContainerConfigError", Err: imageErr}
		}
	}
	if errors.Is(err, runtime.ErrNameReserved) {
		err = fmt.Errorf("attempt %d: %w", a.Attempt, err)
	}
	return &result.StartError{Reason: "CreateContainerError", Err: fmt.Errorf("creating container %s: %w", a.Container, err)}
}

var errSandboxMissing = errors.New("the sandbox of the container no longer exists")

// prepareContainerInput prepares the volumes and files of a container. It returns the configuration
// of the sandbox, and the input for rendering the configuration of the container.
func (e *Runner) prepareContainerInput(ctx context.Context, s Input, a plan.StartContainer) (*cri.PodSandboxConfig, render.ContainerInput, error) {
	var in render.ContainerInput
	sandbox := runtime.FindSandbox(s.Observed, a.SandboxID)
	if sandbox == nil {
		return nil, in, fmt.Errorf("creating container %s: %w", a.Container, errSandboxMissing)
	}
	volumes, err := e.Disk.Prepare(ctx, s.Desired, s.volumes(s.Desired))
	if err != nil {
		return nil, in, err
	}
	ips := status.OnePerFamily(sandbox.IPs, s.Node.HostIPs)
	hosts, err := e.writeHosts(s, ips)
	if err != nil {
		return nil, in, err
	}
	c, kind, index := plan.FindContainer(s.Desired.Object, a.Container)
	if err := checkProfile(&s.Desired.Object.Spec, c, s.Node); err != nil {
		return nil, in, err
	}
	message, err := e.Disk.CreateMessageFile(s.Desired.UID, a.Container, a.Attempt)
	if err != nil {
		return nil, in, fmt.Errorf("creating the file for the termination message of container %s: %w", a.Container, err)
	}
	user := a.ImageUser
	if user == nil {
		if user, err = e.queryImageUser(ctx, a); err != nil {
			return nil, in, err
		}
	}
	in = render.ContainerInput{
		Pod: s.Desired, Container: c, Node: *s.Node, Refs: s.Refs, Attempt: a.Attempt, Restarts: a.Restarts,
		Image: a.ImageRef, ImageUser: user, PodIPs: ips, Volumes: volumes, HostsFile: hosts, TerminationLog: message,
		UserIDs: sandbox.HostIDs(), BackoffStep: a.Crashes, PodRestarts: a.PodRestarts, Kind: string(kind), Index: index, TargetID: a.TargetID,
	}
	images, err := e.pullVolumeImages(ctx, s, s.Desired, c, true, ignorePull)
	if err != nil {
		return nil, in, err
	}
	if s.Node.SELinuxEnabled {
		if in.Relabelable, err = e.Disk.Relabelable(volumes); err != nil {
			return nil, in, fmt.Errorf("reading which volumes can be relabeled: %w", err)
		}
	}
	in.Images = map[string]string{}
	for _, v := range images {
		in.Images[v.volume] = v.Ref
	}
	if in.EnvFiles, err = e.Disk.ReadEnvFiles(s.Desired, volumes, render.EnvFiles(c)); err != nil {
		return nil, in, fmt.Errorf("setting the environment of container %q: %w", a.Container, err)
	}
	subs, err := render.SubPaths(in)
	if err != nil {
		return nil, in, err
	}
	if in.SubPaths, err = e.Disk.BindSubPaths(ctx, s.Desired, a.Container, volumes, subs); err != nil {
		return nil, in, err
	}
	config, err := render.Sandbox(render.SandboxInput{Pod: s.Desired, Node: *s.Node, Attempt: sandbox.Attempt, UserIDs: in.UserIDs, DeviceIDs: allocation.SandboxIDs(&sandbox.Sandbox)})
	return config, in, err
}

// stopContainer stops a container and returns its status. It returns nil if the runtime reports
// that the container does not exist.
func (e *Runner) stopContainer(ctx context.Context, observed []runtime.Incarnation, a plan.StopContainer) (*runtime.Container, error) {
	var uid types.UID // "" if the container was not observed
	if inc, _ := runtime.FindContainer(observed, a.ID); inc != nil {
		uid = inc.UID
	}
	if err := e.stop(ctx, uid, a.ID, a.Grace); err != nil {
		return nil, fmt.Errorf("stopping container %s: %w", a.Container, err)
	}
	c, err := e.Runtime.ContainerStatus(ctx, a.ID)
	if errors.Is(err, runtime.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("querying the status of stopped container %s: %w", a.Container, err)
	}
	if c.State == runtime.Running || c.State == runtime.Unknown {
		return &c, fmt.Errorf("stopping container %s: the runtime reports the state %s after the stop", a.Container, strings.ToLower(string(c.State)))
	}
	return &c, nil
}
