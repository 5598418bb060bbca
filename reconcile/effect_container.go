package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/status"
	"podd/runtime"
)

// startError is a start that failed, with the waiting reason Kubernetes has
// for the step.
type startError struct {
	reason string
	err    error
}

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// startReason is what a status calls the failure of a start.
func startReason(err error) string {
	if e, ok := errors.AsType[*startError](err); ok {
		return e.reason
	}
	return "CreateContainerError"
}

// start creates and starts a container. With an error, the container may still
// tell what became of it; the warning is about what hangs on it.
func (e *Effects) start(ctx context.Context, s scene, a plan.StartContainer) (c *runtime.Container, warning string, err error) {
	var devices []render.Device
	if a.CreatedID == "" {
		given, done, err := e.containerDevices(ctx, s, a.Container)
		if err != nil {
			return nil, "", err
		}
		defer done()
		devices = given
	}
	leave, err := e.Gate.enter(ctx, forContainer)
	if err != nil {
		return nil, "", err
	}
	defer leave()
	id := a.CreatedID
	if id == "" {
		if id, err = e.create(ctx, s, a, devices); err != nil {
			return nil, "", err
		}
	}
	started, done := whole(ctx)
	err = e.Runtime.StartContainer(started, id)
	done()
	now, statusErr := e.Runtime.ContainerStatus(ctx, id)
	if statusErr == nil {
		// CRI does not tell a container's sandbox in its status.
		now.SandboxID = a.SandboxID
		c = &now
	}
	if err != nil {
		return c, "", &startError{"RunContainerError", fmt.Errorf("starting container %s: %w", a.Container, err)}
	}
	if statusErr != nil {
		return nil, "", fmt.Errorf("looking at the started container %s: %w", a.Container, statusErr)
	}
	if err := e.Leftovers.Started(s.desired, a.Container, id, a.Attempt); err != nil {
		warning = err.Error()
	}
	return c, warning, nil
}

func (e *Effects) create(ctx context.Context, s scene, a plan.StartContainer, devices []render.Device) (string, error) {
	sandbox, in, err := e.containerInput(ctx, s, a)
	if err != nil {
		return "", &startError{"CreateContainerConfigError", err}
	}
	in.Devices = devices
	config, err := render.Container(in)
	if err != nil {
		return "", &startError{"CreateContainerConfigError", err}
	}
	if err := e.makeRoom(s); err != nil {
		return "", &startError{"CreateContainerError", err}
	}
	id, err := e.Runtime.CreateContainer(ctx, a.SandboxID, config, sandbox)
	if errors.Is(err, runtime.ErrNotFound) {
		// Of the sandbox and the image, the runtime names only what it looked for.
		if _, gone := e.imageUser(ctx, a); gone != nil {
			return "", &startError{"CreateContainerConfigError", gone}
		}
	}
	if err != nil {
		return "", &startError{"CreateContainerError", fmt.Errorf("creating container %s: %w", a.Container, err)}
	}
	return id, nil
}

var errSandboxGone = errors.New("its sandbox is gone")

func (e *Effects) containerInput(ctx context.Context, s scene, a plan.StartContainer) (*cri.PodSandboxConfig, render.ContainerInput, error) {
	var in render.ContainerInput
	sandbox := findSandbox(s.observed, a.SandboxID)
	if sandbox == nil {
		return nil, in, fmt.Errorf("creating container %s: %w", a.Container, errSandboxGone)
	}
	volumes, err := e.Disk.Prepare(ctx, s.desired, s.volumes(s.desired))
	if err != nil {
		return nil, in, err
	}
	ips := status.OnePerFamily(sandbox.IPs, s.node.HostIPs)
	hosts, err := e.writeHosts(s, ips)
	if err != nil {
		return nil, in, err
	}
	c, kind, index := findContainer(s.desired.Spec, a.Container)
	if err := checkProfile(&s.desired.Spec.Spec, c, s.node); err != nil {
		return nil, in, err
	}
	message, err := e.Disk.MakeMessage(s.desired.UID, a.Container, a.Attempt)
	if err != nil {
		return nil, in, fmt.Errorf("making the file for the termination message of container %s: %w", a.Container, err)
	}
	user := a.ImageUser
	if user == nil {
		if user, err = e.imageUser(ctx, a); err != nil {
			return nil, in, err
		}
	}
	in = render.ContainerInput{
		Pod: s.desired, Container: c, Node: *s.node, Supply: s.supply, Attempt: a.Attempt,
		Image: a.ImageRef, ImageUser: user, PodIPs: ips, Volumes: volumes, HostsFile: hosts, TerminationLog: message,
		UserIDs: sandbox.UserIDs(), BackoffStep: a.Backoff, Kind: string(kind), Index: index, TargetID: a.TargetID,
	}
	if in.Images, err = e.volumeImages(ctx, s, s.desired, true); err != nil {
		return nil, in, err
	}
	subs, err := render.SubPaths(in)
	if err != nil {
		return nil, in, err
	}
	if in.SubPaths, err = e.Disk.BindSubPaths(ctx, s.desired, a.Container, volumes, subs); err != nil {
		return nil, in, err
	}
	config, err := render.Sandbox(render.SandboxInput{Pod: s.desired, Node: *s.node, Attempt: sandbox.Attempt, UserIDs: in.UserIDs})
	return config, in, err
}

// imageUser is who the image runs as.
func (e *Effects) imageUser(ctx context.Context, a plan.StartContainer) (*runtime.ImageUser, error) {
	image, present, err := e.Runtime.ImageStatus(ctx, a.ImageRef)
	if err != nil {
		return nil, fmt.Errorf("looking at the image of container %s: %w", a.Container, err)
	}
	if !present {
		return nil, fmt.Errorf("creating container %s: its image is gone; it is fetched again", a.Container)
	}
	return &image.User, nil
}

func findSandbox(observed []runtime.Incarnation, id string) *runtime.Sandbox {
	for i := range observed {
		if observed[i].ID == id {
			return &observed[i].Sandbox
		}
	}
	return nil
}

func findContainer(pod *v1.Pod, name string) (c *v1.Container, kind plan.Kind, index int) {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name {
			return c, plan.KindOf(c, true), i
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := &pod.Spec.EphemeralContainers[i].EphemeralContainerCommon; c.Name == name {
			return (*v1.Container)(c), plan.Ephemeral, i
		}
	}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			return c, plan.Regular, i
		}
	}
	return nil, "", 0
}

// stop ends a container and tells how it ended, nil when nobody knows any more.
func (e *Effects) stop(ctx context.Context, a plan.StopContainer) (*runtime.Container, error) {
	if err := e.Runtime.StopContainer(ctx, a.ID, a.Grace); err != nil {
		return nil, fmt.Errorf("stopping container %s: %w", a.Container, err)
	}
	c, err := e.Runtime.ContainerStatus(ctx, a.ID)
	if errors.Is(err, runtime.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking at the stopped container %s: %w", a.Container, err)
	}
	if c.State == runtime.Running || c.State == runtime.Unknown {
		return &c, fmt.Errorf("stopping container %s: the runtime says that it is %s after it was stopped", a.Container, strings.ToLower(string(c.State)))
	}
	return &c, nil
}
