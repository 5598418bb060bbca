package runtimetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// createNotFoundError returns the error of CreateContainer for an image or sandbox that does not
// exist.
func (r *Runtime) createNotFoundError(kind, id string) error {
	switch {
	case !r.options.CRIO:
		return notFoundError(kind, id)
	case kind == "image":
		return status.Errorf(codes.Unknown, `reference "[overlay@/var/lib/containers/storage]%s" does not resolve to an image ID`, id)
	}
	return status.Errorf(codes.Unknown, "specified sandbox not found: %s: PodSandbox with ID starting with %s not found: ID does not exist", id, id)
}

// prepare opens the log of a container and looks up its program. CRI-O does this in
// CreateContainer, and containerd in StartContainer.
func (c *container) prepare() error {
	if log := c.logFile(); log != "" {
		if _, err := os.Stat(filepath.Dir(log)); err != nil {
			return fmt.Errorf("container create failed: exit status 1")
		}
	}
	if c.program.StartError != "" {
		return status.Errorf(codes.Unknown, "container create failed: time=%q level=error msg=%q\n", "2026-11-23T01:35:03Z",
			"runc create failed: unable to start container process: "+c.program.StartError)
	}
	return nil
}

// HideExitFiles sets whether the status of exited containers contains no finish time and the exit
// code -1. CRI-O reports such a status before conmon has written the exit file of the container.
func (r *Runtime) HideExitFiles(hide bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exitFilesHidden = hide
}

// stopContainersLocked sends the stop signal to the running containers of a sandbox that is being
// stopped. It waits until they have exited or ctx is done. It does nothing if the Runtime does not
// imitate CRI-O, because other runtimes kill the containers. The lock is released while the
// function waits.
func (r *Runtime) stopContainersLocked(ctx context.Context, sb *sandbox) error {
	if !r.options.CRIO {
		return nil
	}
	for _, c := range r.containersOfLocked(sb.id) {
		if c.state != api.ContainerState_CONTAINER_RUNNING {
			continue
		}
		if !c.isSignaled && !c.program.IgnoresTerm {
			r.exitLaterLocked(c, c.program.TermDelay, c.program.termCode(), "")
		}
		c.isSignaled = true
		r.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-c.done:
		}
		r.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
