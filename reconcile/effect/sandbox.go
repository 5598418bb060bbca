package effect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/result"
	"podd/runtime"
)

// An interrupted RunPodSandbox or CreateContainer reserves the name of the new object until
// the runtime has cleaned up, although the object is not listed. podd tries again every
// nameRetryInterval for nameRetryTimeout, and then uses the next attempt number.
const (
	nameRetryInterval = 100 * time.Millisecond
	nameRetryTimeout  = 5 * time.Second
)

// retryWhileNameReserved calls create until it succeeds or returns an error other than
// runtime.ErrNameReserved. After nameRetryTimeout, retryWhileNameReserved returns
// runtime.ErrNameReserved.
func retryWhileNameReserved(ctx context.Context, create func() error) error {
	ticker := time.NewTicker(nameRetryInterval)
	defer ticker.Stop()
	for start := time.Now(); ; {
		err := create()
		if !errors.Is(err, runtime.ErrNameReserved) || time.Since(start) > nameRetryTimeout {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// runSandbox creates a sandbox. It then lists the sandboxes that other agents have created for the
// same pod, before a container is started. Each agent lists the sandboxes after it has created its
// own sandbox. So if two agents create a sandbox at the same time, at least one agent finds both
// sandboxes.
func (e *Runner) runSandbox(ctx context.Context, s Input, a plan.RunSandbox) (result.CreatedSandbox, error) {
	done, err := e.allocateDevices(ctx, s.Desired)
	if err != nil {
		return result.CreatedSandbox{}, err
	}
	defer done()
	sandbox, call, err := e.createSandbox(ctx, s, a.Attempt)
	if err != nil {
		return result.CreatedSandbox{Call: call}, err
	}
	otherSandboxes, err := e.listOtherSandboxes(ctx, s)
	if err != nil {
		return result.CreatedSandbox{Call: call}, fmt.Errorf("listing other sandboxes of the pod: %w", err)
	}
	return result.CreatedSandbox{Sandbox: sandbox, Others: otherSandboxes, Call: call}, nil
}

// listOtherSandboxes returns the ready sandboxes with the pod's name that other agents have created.
func (e *Runner) listOtherSandboxes(ctx context.Context, s Input) ([]runtime.Sandbox, error) {
	sandboxes, err := e.Runtime.ReadySandboxes(ctx, s.Key)
	var otherSandboxes []runtime.Sandbox
	for _, o := range sandboxes {
		if o.Foreign = !slices.Contains(s.Node.OwnInstances(), o.Labels[runtime.LabelInstance]); o.Foreign {
			otherSandboxes = append(otherSandboxes, o)
		}
	}
	return otherSandboxes, err
}

// createSandbox creates the cgroup, the log directory and the sandbox of a pod. call is the last call
// of RunPodSandbox, or nil if there was none. The error is runtime.ErrNameReserved if the name of the
// sandbox is still reserved after nameRetryTimeout. Another instance that creates the same pod may have
// reserved the name. In this case podd creates its sandbox later, with the next attempt number, and
// runSandbox then finds the sandbox of the other instance.
func (e *Runner) createSandbox(ctx context.Context, s Input, attempt uint32) (sandbox *runtime.Sandbox, call *result.Call, err error) {
	if err := e.setCgroupLimits(render.PodCgroup(s.Desired, *s.Node)); err != nil {
		return nil, nil, err
	}
	if err := e.LogsAndCgroups.MakeLogDirs(s.Desired, ""); err != nil {
		return nil, nil, fmt.Errorf("creating the sandbox: %w", err)
	}
	node, err := e.currentNode(s)
	if err != nil {
		return nil, nil, fmt.Errorf("creating the sandbox: %w", err)
	}
	config, err := render.Sandbox(render.SandboxInput{Pod: s.Desired, Node: node, Attempt: attempt, UserIDs: s.UserIDs, DeviceIDs: e.allocatedDevices(s.Desired)})
	if err != nil {
		return nil, nil, err
	}
	err = retryWhileNameReserved(ctx, func() (err error) {
		sandbox, call, err = e.runPodSandbox(ctx, s, config)
		return err
	})
	if errors.Is(err, runtime.ErrNameReserved) {
		err = fmt.Errorf("attempt %d: %w", attempt, err)
	}
	if err != nil {
		return nil, call, fmt.Errorf("creating the sandbox: %w", err)
	}
	return sandbox, call, nil
}

// runPodSandbox waits for a slot of the Gate, creates a sandbox and returns it. It returns
// runtime.ErrNameReserved if another sandbox has the name. In this case containerd returns an error,
// but CRI-O returns the other sandbox, even if another agent created it from another configuration. call
// is the call of RunPodSandbox, or nil if ctx was done before there was a slot.
func (e *Runner) runPodSandbox(ctx context.Context, s Input, config *cri.PodSandboxConfig) (_ *runtime.Sandbox, call *result.Call, err error) {
	release, err := e.Gate.acquire(ctx, sandboxRank)
	if err != nil {
		return nil, nil, err
	}
	defer func() { release(err) }()
	startCtx, done := withDelayedCancel(ctx)
	startTime := time.Now()
	id, err := e.Runtime.RunPodSandbox(startCtx, config, s.Desired.RuntimeHandler(s.Node.RuntimeClasses))
	call = &result.Call{Took: time.Since(startTime), Err: err}
	done()
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = &result.AbandonedCallError{Err: err}
	}
	if err != nil {
		return nil, call, err
	}
	sandbox, err := e.Runtime.PodSandboxStatus(ctx, id)
	if err != nil {
		return nil, call, &result.SandboxStatusError{Err: err}
	}
	if sandbox.Labels[runtime.LabelInstance] != config.Labels[runtime.LabelInstance] ||
		sandbox.Annotations[runtime.AnnotationPodHash] != config.Annotations[runtime.AnnotationPodHash] {
		return nil, call, fmt.Errorf("existing sandbox %s has the same name: %w", id, runtime.ErrNameReserved)
	}
	return &sandbox, call, nil
}

// currentNode returns the node with its current DNS configuration, because a host may get its DNS
// servers long after podd was started.
func (e *Runner) currentNode(s Input) (render.Node, error) {
	node := *s.Node
	if e.DNS == nil {
		return node, nil
	}
	var err error
	node.DNS, err = e.DNS()
	return node, err
}

// cancelDelay is how long the runtime may continue a start after the start was canceled or podd
// received a signal to stop.
const cancelDelay = 10 * time.Second

// withDelayedCancel returns a context that is canceled cancelDelay after parent is done, because a
// runtime does not always clean up after a canceled start. done releases the returned context.
func withDelayedCancel(parent context.Context) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		timer := time.NewTimer(cancelDelay)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { stop(); cancel() }
}
