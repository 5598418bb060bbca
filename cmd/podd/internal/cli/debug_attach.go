package cli

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/stream"
	"podd/server"
)

// attach attaches to the container until the container has terminated. If the exit code of the
// container is not 0, attach returns an error that makes podd exit with the same code.
func (c *DebugCmd) attach(ctx context.Context, p *client.Client, pod *server.PodView, status *v1.ContainerStatus, podArg string, s iostreams.Streams) error {
	err := c.copyStreams(ctx, p, pod, status, podArg, s)
	if err != nil {
		return err
	}
	terminated, err := waitTerminated(ctx, p, pod, status.Name)
	if err != nil || terminated.ExitCode == 0 {
		return err
	}
	return exitStatusError(&stream.ExitError{Code: int(terminated.ExitCode)}, c.Quiet)
}

// copyStreams copies the streams until the container closes its output. Without a terminal,
// copyStreams reads the output from the log, because the log also contains the output that was
// written before podd attached.
func (c *DebugCmd) copyStreams(ctx context.Context, p *client.Client, pod *server.PodView, status *v1.ContainerStatus, podArg string, s iostreams.Streams) error {
	isRunning := status.State.Terminated == nil
	if !isRunning || !c.TTY {
		return c.copyOutputAndInput(ctx, p, pod, status.Name, isRunning && c.Stdin, s)
	}
	a := &AttachCmd{SessionFlags{Container: status.Name, Stdin: c.Stdin, TTY: c.TTY, Quiet: c.Quiet}}
	err := a.attach(ctx, p, pod, status.Name, podArg, s)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, waitErr := waitTerminated(ctx, p, pod, status.Name); waitErr != nil {
		return err
	}
	return c.copyOutput(ctx, p, pod, status.Name, s) // the container terminated before podd could attach
}

// copyOutputAndInput copies the output of the container until the container closes its output. If
// hasInput is set, copyOutputAndInput also copies the input of the user to the container.
func (c *DebugCmd) copyOutputAndInput(ctx context.Context, p *client.Client, pod *server.PodView, name string, hasInput bool, s iostreams.Streams) error {
	if !hasInput {
		return c.copyOutput(ctx, p, pod, name, s)
	}
	ctx, stop := context.WithCancelCause(ctx)
	var input sync.WaitGroup
	defer input.Wait()
	defer stop(nil)
	input.Go(func() {
		err := p.RunCommand(ctx, containerPath("/attach/", pod, name), url.Values{}, &stream.Command{Stdin: s.In})
		if err == nil || ctx.Err() != nil {
			return
		}
		if _, waitErr := waitTerminated(ctx, p, pod, name); waitErr != nil {
			stop(fmt.Errorf("sending input to container %s: %w", name, err))
		}
	})
	err := c.copyOutput(ctx, p, pod, name, s)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// copyOutput copies the log of the container until the container closes its output.
func (c *DebugCmd) copyOutput(ctx context.Context, p *client.Client, pod *server.PodView, name string, s iostreams.Streams) error {
	streams, ctx := errgroup.WithContext(ctx)
	for _, from := range []server.LogStream{server.Stdout, server.Stderr} {
		req := (&LogsCmd{Tail: -1, Follow: true}).newLogRequest(pod, name)
		req.Stream = from
		to := s.Out
		if from == server.Stderr {
			to = s.Err
		}
		streams.Go(func() error { return p.CopyLog(ctx, req, to) })
	}
	return streams.Wait()
}

// exitTimeout limits the wait for the exit code after the output is closed.
const exitTimeout = 10 * time.Second

// waitTerminated waits until the container has terminated, and returns its final state. It returns
// an error after exitTimeout.
func waitTerminated(ctx context.Context, p *client.Client, pod *server.PodView, name string) (*v1.ContainerStateTerminated, error) {
	key, uid := pod.Key(), pod.Pod.UID
	waitCtx, cancel := context.WithTimeout(ctx, exitTimeout)
	defer cancel()
	var terminated *v1.ContainerStateTerminated
	err := p.WatchViews(waitCtx, func(v *server.View) (bool, error) {
		pod := v.Pod(key)
		switch {
		case pod == nil:
			return false, fmt.Errorf("pod %s was deleted; the exit code of container %s is unknown", key, name)
		case pod.Pod.UID != uid:
			return false, fmt.Errorf("pod %s was replaced; the exit code of container %s is unknown", key, name)
		}
		if status := ephemeralStatus(pod, name); status != nil {
			terminated = status.State.Terminated
		}
		return terminated != nil, nil
	})
	if isTimeout(ctx, err) {
		err = fmt.Errorf("container %s of %s closed its output, but has not exited, so its exit code is unknown; run \"podd why %s\" for the reason", name, key, key)
	}
	return terminated, err
}
