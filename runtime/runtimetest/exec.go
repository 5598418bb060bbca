package runtimetest

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// OnExec sets the function that returns the behavior of a command in a container. If program is nil
// or OnExec was not called, ParseProgram is used. The argument container is
// "namespace/pod/container". program may be called concurrently.
func (r *Runtime) OnExec(program func(container string, command []string) Program) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onExec = program
}

// ExecSync runs a command.
func (s *service) ExecSync(ctx context.Context, q *api.ExecSyncRequest) (*api.ExecSyncResponse, error) {
	s.mu.Lock()
	c := s.containers[q.GetContainerId()]
	isRunning := c != nil && c.state == api.ContainerState_CONTAINER_RUNNING
	onExec := s.onExec
	s.mu.Unlock()
	switch {
	case c == nil:
		return nil, status.Errorf(codes.NotFound, "failed to exec in container: failed to find container %q in store: not found", q.GetContainerId())
	case !isRunning:
		return nil, status.Errorf(codes.Unknown, "failed to exec in container: container is in %s state", c.status().State)
	}
	var p Program
	if onExec == nil {
		p = ParseProgram(q.GetCmd())
	} else {
		p = onExec(c.subject(), q.GetCmd())
	}
	if !p.ExitsByItself {
		p.RunDuration = time.Duration(1<<63 - 1)
	}
	limit := time.Duration(q.GetTimeout()) * time.Second
	exceedsTimeout := limit > 0 && p.RunDuration > limit
	if exceedsTimeout {
		p.RunDuration = limit
	}
	timer := time.NewTimer(p.RunDuration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.done:
		return &api.ExecSyncResponse{ExitCode: 137}, nil
	case <-timer.C:
	}
	if exceedsTimeout && s.options.CRIO {
		return &api.ExecSyncResponse{Stderr: []byte("command timed out"), ExitCode: -1}, nil
	}
	if exceedsTimeout {
		return nil, status.Errorf(codes.DeadlineExceeded, "failed to exec in container: timeout %s exceeded: context deadline exceeded", limit)
	}
	return &api.ExecSyncResponse{Stdout: []byte(p.Output), ExitCode: p.ExitCode}, nil
}
