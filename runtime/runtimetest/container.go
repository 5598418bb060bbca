package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A container changes its state as CRI specifies.
//
//	CreateContainer ──▶ created ──StartContainer──▶ running ──exit, stop, kill──▶ exited
//	                       └──────start fails (128, StartError)──────────────────────┘
type container struct {
	id, name   string
	config     *api.ContainerConfig // never modified
	sandbox    *sandbox
	imageID    string
	imageRef   string
	program    Program
	resources  *api.LinuxContainerResources
	memory     uint64 // memory usage in bytes
	createdAt  time.Time
	startedAt  time.Time
	finishedAt time.Time
	code       int32
	reason     string
	message    string
	state      api.ContainerState
	isSignaled bool // whether a stop signal was sent
	timers     []*time.Timer
	done       chan struct{} // closed at the exit
}

func (s *service) CreateContainer(ctx context.Context, q *api.CreateContainerRequest) (*api.CreateContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sb := s.sandboxes[q.GetPodSandboxId()]
	switch {
	case sb == nil:
		return nil, s.createNotFoundError("sandbox", q.GetPodSandboxId())
	case !sb.isReady:
		return nil, fmt.Errorf("sandbox container %q is not running", sb.id)
	case q.GetConfig().GetMetadata() == nil || q.GetSandboxConfig().GetMetadata() == nil:
		return nil, errors.New("container config must include metadata")
	}
	m := q.Config.Metadata
	image := s.findImageLocked(q.Config.GetImage().GetImage())
	if image == nil {
		return nil, s.createNotFoundError("image", q.Config.GetImage().GetImage())
	}
	c := &container{
		id: s.newIDLocked(), name: fmt.Sprintf("%s_%s_%d", m.GetName(), sb.name, m.GetAttempt()),
		config: q.Config, sandbox: sb, imageID: image.ID, imageRef: image.ref(), program: image.program(q.Config),
		createdAt: time.Now(), done: make(chan struct{}), resources: q.Config.GetLinux().GetResources(),
	}
	if existing := s.containers[s.names["container"+c.name]]; existing != nil && s.options.CRIO {
		return &api.CreateContainerResponse{ContainerId: existing.id}, nil
	}
	if err := s.reserveNameLocked(ctx, "container", c.name, c.id); err != nil {
		return nil, err
	}
	err := s.waitMidCallLocked(ctx)
	if err == nil && s.options.CRIO {
		err = c.prepare()
	}
	if err != nil {
		s.releaseNameLocked("container", c.name)
		return nil, err
	}
	s.containers[c.id] = c
	s.announceLocked(api.ContainerEventType_CONTAINER_CREATED_EVENT, c.id, sb)
	return &api.CreateContainerResponse{ContainerId: c.id}, nil
}

func (s *service) StartContainer(_ context.Context, q *api.StartContainerRequest) (*api.StartContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.containers[q.GetContainerId()]
	switch {
	case c == nil:
		return nil, notFoundError("container", q.GetContainerId())
	case c.state != api.ContainerState_CONTAINER_CREATED:
		return nil, fmt.Errorf("failed to set starting state for container %q: container is in %s state", c.id, c.state)
	case !c.sandbox.isReady:
		return nil, s.recordStartFailureLocked(c, fmt.Errorf("sandbox container %q is not running", c.sandbox.id))
	case c.program.StartError != "":
		return nil, s.recordStartFailureLocked(c, fmt.Errorf("failed to create containerd task: failed to create shim task: "+
			"OCI runtime create failed: runc create failed: unable to start container process: %s: unknown", c.program.StartError))
	}
	if err := c.writeLog(); err != nil {
		return nil, s.recordStartFailureLocked(c, err)
	}
	c.state, c.startedAt = api.ContainerState_CONTAINER_RUNNING, time.Now()
	s.announceLocked(api.ContainerEventType_CONTAINER_STARTED_EVENT, c.id, c.sandbox)
	if c.program.ExitsByItself {
		s.exitLaterLocked(c, c.program.RunDuration, c.program.ExitCode, c.program.Reason)
	}
	return &api.StartContainerResponse{}, nil
}

// recordStartFailureLocked records that the start of a container failed with err, and returns err.
func (r *Runtime) recordStartFailureLocked(c *container, err error) error {
	if r.options.CRIO {
		return err // leave the container in the state Created, as older versions of CRI-O do
	}
	c.state, c.finishedAt = api.ContainerState_CONTAINER_EXITED, time.Now()
	c.code, c.reason, c.message = 128, "StartError", err.Error()
	close(c.done)
	return err
}

// exitLaterLocked makes a container exit after a delay. It has no effect if the container exits
// earlier.
func (r *Runtime) exitLaterLocked(c *container, delay time.Duration, code int32, reason string) {
	c.timers = append(c.timers, time.AfterFunc(delay, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.exitLocked(c, code, reason)
	}))
}

// exitLocked makes a container exit, unless the container is not running.
func (r *Runtime) exitLocked(c *container, code int32, reason string) {
	if c.state != api.ContainerState_CONTAINER_RUNNING {
		return
	}
	if reason == "" {
		reason = "Completed"
		if code != 0 {
			reason = "Error"
		}
	}
	c.state, c.finishedAt, c.code, c.reason = api.ContainerState_CONTAINER_EXITED, time.Now(), code, reason
	for _, timer := range c.timers {
		timer.Stop()
	}
	close(c.done)
	r.announceLocked(api.ContainerEventType_CONTAINER_STOPPED_EVENT, c.id, c.sandbox)
}

func (s *service) StopContainer(ctx context.Context, q *api.StopContainerRequest) (*api.StopContainerResponse, error) {
	s.mu.Lock()
	c := s.containers[q.GetContainerId()]
	if c == nil || c.state != api.ContainerState_CONTAINER_RUNNING {
		s.mu.Unlock()
		return &api.StopContainerResponse{}, nil
	}
	if q.GetTimeout() > 0 && !c.isSignaled {
		c.isSignaled = true
		if !c.program.IgnoresTerm {
			s.exitLaterLocked(c, c.program.TermDelay, c.program.termCode(), "")
		}
	}
	s.mu.Unlock()
	if q.GetTimeout() > 0 {
		timer := time.NewTimer(time.Duration(q.GetTimeout()) * time.Second)
		defer timer.Stop()
		select {
		case <-c.done:
			return &api.StopContainerResponse{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exitLocked(c, 137, "")
	return &api.StopContainerResponse{}, nil
}

func (s *service) RemoveContainer(_ context.Context, q *api.RemoveContainerRequest) (*api.RemoveContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.containers[q.GetContainerId()]; c != nil {
		s.exitLocked(c, 137, "")
		s.removeLocked(c)
	}
	return &api.RemoveContainerResponse{}, nil
}

func (r *Runtime) removeLocked(c *container) {
	delete(r.containers, c.id)
	r.releaseNameLocked("container", c.name)
	r.announceLocked(api.ContainerEventType_CONTAINER_DELETED_EVENT, c.id, c.sandbox)
}

// containersOfLocked returns a sandbox's containers in the order of creation.
func (r *Runtime) containersOfLocked(id string) []*container {
	var containers []*container
	for c := range maps.Values(r.containers) {
		if c.sandbox.id == id {
			containers = append(containers, c)
		}
	}
	slices.SortFunc(containers, func(a, b *container) int { return a.createdAt.Compare(b.createdAt) })
	return containers
}

// stopPrograms stops the timers of all containers, so that no timer runs after the test.
func (r *Runtime) stopPrograms() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		r.exitLocked(c, 137, "")
	}
}

// ExitContainer makes a running container exit with a code, as if its process had exited. name is
// the ID of the container or "namespace/pod/container". ExitContainer returns false if no such
// container is running.
func (r *Runtime) ExitContainer(name string, code int32) bool {
	return r.exitWithReason(name, code, "")
}

// exitWithReason works like ExitContainer. reason is the reason in the status, for example
// "OOMKilled"; "" means Completed or Error, depending on the code.
func (r *Runtime) exitWithReason(name string, code int32, reason string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.state == api.ContainerState_CONTAINER_RUNNING && (c.id == name || c.subject() == name) {
			r.exitLocked(c, code, reason)
			return true
		}
	}
	return false
}

// SetMemoryUsage sets the memory usage of a running container. name is
// "namespace/pod/container".
func (r *Runtime) SetMemoryUsage(name string, bytes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.state == api.ContainerState_CONTAINER_RUNNING && c.subject() == name {
			c.memory = bytes
		}
	}
}

// subject returns "namespace/pod/container", the value of Call.Subject.
func (c *container) subject() string {
	m := c.sandbox.config.GetMetadata()
	return m.GetNamespace() + "/" + m.GetName() + "/" + c.config.GetMetadata().GetName()
}
