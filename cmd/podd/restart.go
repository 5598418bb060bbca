package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/progress"
	"podd/server"
)

// RestartCmd is podd restart.
type RestartCmd struct {
	Client
	Select
	Pod       string        `arg:"" help:"A pod, with or without the node's name." complete:"pod"`
	Container string        `short:"c" placeholder:"NAME" help:"This container only; else all but the init containers that are done." complete:"container"`
	Timeout   time.Duration `default:"2m" placeholder:"DURATION" help:"Give up waiting for the pod to be ready again after this long (2m); 0 does not wait."`
}

// Run has the containers started again and waits until the pod is ready.
func (c *RestartCmd) Run(ctx context.Context, s Streams) error {
	p, err := c.connect(ctx)
	if err != nil {
		return err
	}
	v, pod, err := p.findPod(ctx, c.Select, c.Pod)
	if err != nil {
		return err
	}
	if c.Container != "" {
		if err := checkContainer(pod, c.Container); err != nil {
			return err
		}
	}
	begin := time.Now()
	key := pod.Key()
	before := running(pod, c.Container)
	if err := p.restart(ctx, server.Target{Namespace: key.Namespace, Pod: key.Name, Container: c.Container}); err != nil {
		return err
	}
	name := title(v, key)
	if c.Timeout <= 0 {
		fmt.Fprintf(s.Err, "podd: %s restarts\n", name)
		return nil
	}
	return c.await(ctx, p, key, before, begin, s)
}

// await returns when other containers than those before run and the pod is
// ready, or explains why not.
func (c *RestartCmd) await(ctx context.Context, p *peer, key server.Key, before []string, begin time.Time, s Streams) error {
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	foot := progress.New(s.Err)
	defer foot.Close()
	s.Err = foot.Writer(s.Err)
	var last *server.View
	err := p.watch(limited, func(v *server.View) (bool, error) {
		last = v
		pod := v.Pod(key)
		if pod == nil {
			return false, fmt.Errorf("%s went while it restarted: no manifest has it any more", title(v, key))
		}
		foot.Set(pulling(pod))
		again := !slices.ContainsFunc(running(pod, c.Container), func(id string) bool { return slices.Contains(before, id) })
		return again && pod.Ready && pod.Pod.DeletionTimestamp == nil, nil
	})
	took := lasted(time.Since(begin))
	switch {
	case err == nil:
		fmt.Fprintf(s.Err, "podd: %s restarted, ready after %s\n", title(last, key), took)
		return nil
	case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || last == nil:
		return err
	}
	return stillNotReady(newReasons(ctx, p, last), key, took, s)
}

// stillNotReady explains on stderr what the restarted pod waits for.
func stillNotReady(r *reasons, key server.Key, took string, s Streams) error {
	io.WriteString(s.Err, r.text(subject{key: key}))
	return fmt.Errorf("%s is not ready %s after its restart", title(r.view, key), took)
}

// running are the IDs of the containers that run, of one name or of all.
func running(p *server.PodView, container string) []string {
	var ids []string
	for _, c := range slices.Concat(p.Pod.Status.InitContainerStatuses, p.Pod.Status.ContainerStatuses) {
		if runs(c) && (container == "" || c.Name == container) {
			ids = append(ids, c.ContainerID)
		}
	}
	return ids
}

func runs(c v1.ContainerStatus) bool { return c.State.Running != nil }
