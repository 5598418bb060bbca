package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/stream"
	"podd/server"
)

// takePart is the user's part in a container until it has ended, whose code becomes
// podd's own.
func (c *DebugCmd) takePart(ctx context.Context, p *peer, pod *server.PodView, status *v1.ContainerStatus, word string, s Streams) error {
	err := c.streams(ctx, p, pod, status, word, s)
	if err != nil {
		return err
	}
	ended, err := p.untilEnded(ctx, pod, status.Name)
	if err != nil || ended.ExitCode == 0 {
		return err
	}
	return withCode(&stream.ExitError{Code: int(ended.ExitCode)}, c.Quiet)
}

// streams returns when the container says no more. Without a terminal its output is
// that of its log: it has all that was said before anybody could attach.
func (c *DebugCmd) streams(ctx context.Context, p *peer, pod *server.PodView, status *v1.ContainerStatus, word string, s Streams) error {
	runs := status.State.Terminated == nil
	if !runs || !c.TTY {
		return c.fed(ctx, p, pod, status.Name, runs && c.Stdin, s)
	}
	a := &AttachCmd{Container: status.Name, Stdin: c.Stdin, TTY: c.TTY, Quiet: c.Quiet}
	err := a.attach(ctx, p, pod, status.Name, word, s)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, running := p.untilEnded(ctx, pod, status.Name); running != nil {
		return err
	}
	return c.said(ctx, p, pod, status.Name, s) // it ended before anybody could attach
}

// fed copies what the container says until it ends, and to it what the user does.
func (c *DebugCmd) fed(ctx context.Context, p *peer, pod *server.PodView, name string, reads bool, s Streams) error {
	if !reads {
		return c.said(ctx, p, pod, name, s)
	}
	ctx, stop := context.WithCancelCause(ctx)
	var feeds sync.WaitGroup
	defer feeds.Wait()
	defer stop(nil)
	feeds.Go(func() {
		err := p.runCommand(ctx, inPod("/attach/", pod, name), url.Values{}, &stream.Command{Stdin: s.In})
		if err == nil || ctx.Err() != nil {
			return
		}
		if _, running := p.untilEnded(ctx, pod, name); running != nil {
			stop(fmt.Errorf("container %s gets no input: %w", name, err))
		}
	})
	err := c.said(ctx, p, pod, name, s)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// said copies all that the container says until it ends.
func (c *DebugCmd) said(ctx context.Context, p *peer, pod *server.PodView, name string, s Streams) error {
	both, ctx := errgroup.WithContext(ctx)
	for _, from := range []server.LogStream{server.Stdout, server.Stderr} {
		req := (&LogsCmd{Tail: -1, Follow: true}).request(pod, name)
		req.Stream = from
		to := s.Out
		if from == server.Stderr {
			to = s.Err
		}
		both.Go(func() error { return p.logs(ctx, req, to) })
	}
	return both.Wait()
}

// endTime is how long podd may take to see that a container has ended.
const endTime = 10 * time.Second

// untilEnded is how a container ended whose streams have.
func (p *peer) untilEnded(ctx context.Context, of *server.PodView, name string) (*v1.ContainerStateTerminated, error) {
	key := of.Key()
	limited, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	var ended *v1.ContainerStateTerminated
	err := p.watch(limited, func(v *server.View) (bool, error) {
		pod := v.Pod(key)
		switch {
		case pod == nil:
			return false, fmt.Errorf("pod %s is gone, and how container %s ended with it", key, name)
		case pod.Pod.UID != of.Pod.UID:
			return false, fmt.Errorf("pod %s was replaced, and how container %s ended is not known", key, name)
		}
		if status := ephemeralStatus(pod, name); status != nil {
			ended = status.State.Terminated
		}
		return ended != nil, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("container %s of %s says no more and has not ended; podd why %s", name, key, key)
	}
	return ended, err
}
