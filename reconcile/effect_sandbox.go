package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// An interrupted RunPodSandbox holds the sandbox's name, unlisted, until the
// runtime has cleaned up behind it.
const (
	reservedRetry = 100 * time.Millisecond
	reservedLimit = 5 * time.Second
)

func (e *Effects) runSandbox(ctx context.Context, s scene, a plan.RunSandbox) (*runtime.Sandbox, error) {
	done, err := e.useDevices(ctx, s.desired)
	if err != nil {
		return nil, err
	}
	defer done()
	leave, err := e.Gate.enter(ctx, forSandbox)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := e.limitPod(render.PodCgroup(s.desired, *s.node)); err != nil {
		return nil, err
	}
	id, err := e.reserveSandbox(ctx, s, a.Attempt)
	if err != nil {
		return nil, fmt.Errorf("making the sandbox: %w", err)
	}
	sandbox, err := e.Runtime.PodSandboxStatus(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("looking at the new sandbox: %w", err)
	}
	return &sandbox, nil
}

// reserveSandbox retries while the name is still held, then takes the next
// attempt number.
func (e *Effects) reserveSandbox(ctx context.Context, s scene, attempt uint32) (string, error) {
	node, err := e.nodeNow(s)
	if err != nil {
		return "", err
	}
	retry := time.NewTicker(reservedRetry)
	defer retry.Stop()
	for since := time.Now(); ; {
		config, err := render.Sandbox(render.SandboxInput{Pod: s.desired, Node: node, Attempt: attempt, UserIDs: s.userIDs})
		if err != nil {
			return "", err
		}
		made, done := whole(ctx)
		id, err := e.Runtime.RunPodSandbox(made, config, s.desired.RuntimeHandler(s.node.RuntimeClasses))
		done()
		if !errors.Is(err, runtime.ErrNameReserved) {
			return id, err
		}
		if time.Since(since) > reservedLimit {
			attempt++
			since = time.Now()
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-retry.C:
		}
	}
}

// nodeNow is the scene's node with the DNS it has now: a machine may be given
// its own long after podd has started.
func (e *Effects) nodeNow(s scene) (render.Node, error) {
	node := *s.node
	if e.DNS == nil {
		return node, nil
	}
	var err error
	node.DNS, err = e.DNS()
	return node, err
}

// landing is how long a start may go on that the runtime is at when its pod is
// given up or podd is told to end.
const landing = 10 * time.Second

// whole is ctx, but its end comes only landing after that of ctx: a runtime
// whose caller leaves in the middle of a start kills what it has begun, and
// does not always clean up behind it. done frees it.
func whole(ctx context.Context) (whole context.Context, done func()) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		late := time.NewTimer(landing)
		defer late.Stop()
		select {
		case <-late.C:
			cancel()
		case <-whole.Done():
		}
	})
	return whole, func() { stop(); cancel() }
}
