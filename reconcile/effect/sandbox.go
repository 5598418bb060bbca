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
	"podd/runtime"
)

// An interrupted RunPodSandbox or CreateContainer holds the name of the new object,
// unlisted, until the runtime has cleaned up. podd tries again every reservedRetry for
// reservedLimit, and then uses the next attempt number.
const (
	reservedRetry = 100 * time.Millisecond
	reservedLimit = 5 * time.Second
)

// retryReserved calls try again while it fails with runtime.ErrNameReserved, and
// returns that error if the name is held for longer than reservedLimit.
func retryReserved(ctx context.Context, try func() error) error {
	retry := time.NewTicker(reservedRetry)
	defer retry.Stop()
	for since := time.Now(); ; {
		err := try()
		if !errors.Is(err, runtime.ErrNameReserved) || time.Since(since) > reservedLimit {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-retry.C:
		}
	}
}

// runSandbox creates a sandbox, and then lists those that others have created for the same
// pod meanwhile. If two instances create one at the same time, at least one of them sees
// the other's, because each lists after its own is listed. No container is started before.
func (e *Runner) runSandbox(ctx context.Context, s Input, a plan.RunSandbox) (made *runtime.Sandbox, others []runtime.Sandbox, err error) {
	done, err := e.useDevices(ctx, s.Desired)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if made, err = e.createSandbox(ctx, s, a.Attempt); err != nil {
		return nil, nil, err
	}
	if others, err = e.otherSandboxes(ctx, s); err != nil {
		return nil, nil, fmt.Errorf("listing other sandboxes of the pod: %w", err)
	}
	return made, others, nil
}

// otherSandboxes returns the ready sandboxes of the pod's name that this instance did not
// create.
func (e *Runner) otherSandboxes(ctx context.Context, s Input) ([]runtime.Sandbox, error) {
	all, err := e.Runtime.ReadySandboxes(ctx, s.Key)
	var others []runtime.Sandbox
	for _, o := range all {
		if o.Foreign = !slices.Contains(s.Node.Instances(), o.Labels[runtime.LabelInstance]); o.Foreign {
			others = append(others, o)
		}
	}
	return others, err
}

// createSandbox prepares and creates the sandbox. It fails with runtime.ErrNameReserved if
// the name is held for too long. If another instance holds it, because it creates the same
// pod, runSandbox sees that one when it creates a sandbox with the next attempt number.
func (e *Runner) createSandbox(ctx context.Context, s Input, attempt uint32) (*runtime.Sandbox, error) {
	if err := e.setCgroup(render.PodCgroup(s.Desired, *s.Node)); err != nil {
		return nil, err
	}
	if err := e.Leftovers.MakeLogs(s.Desired, ""); err != nil {
		return nil, fmt.Errorf("creating the sandbox: %w", err)
	}
	node, err := e.nodeNow(s)
	if err != nil {
		return nil, fmt.Errorf("creating the sandbox: %w", err)
	}
	config, err := render.Sandbox(render.SandboxInput{Pod: s.Desired, Node: node, Attempt: attempt, UserIDs: s.UserIDs})
	if err != nil {
		return nil, fmt.Errorf("creating the sandbox: %w", err)
	}
	var sandbox *runtime.Sandbox
	err = retryReserved(ctx, func() (err error) {
		sandbox, err = e.runPodSandbox(ctx, s, config)
		return err
	})
	if errors.Is(err, runtime.ErrNameReserved) {
		err = fmt.Errorf("attempt %d: %w", attempt, err)
	}
	if err != nil {
		return nil, fmt.Errorf("creating the sandbox: %w", err)
	}
	return sandbox, nil
}

// runPodSandbox creates a sandbox within the limit on parallel starts and returns it. It
// fails with runtime.ErrNameReserved if another sandbox has the name. containerd reports
// that, but CRI-O returns the other sandbox, even if another agent made it from another
// configuration.
func (e *Runner) runPodSandbox(ctx context.Context, s Input, config *cri.PodSandboxConfig) (*runtime.Sandbox, error) {
	leave, err := e.Gate.enter(ctx, forSandbox)
	if err != nil {
		return nil, err
	}
	defer leave()
	made, done := withDelayedCancel(ctx)
	id, err := e.Runtime.RunPodSandbox(made, config, s.Desired.RuntimeHandler(s.Node.RuntimeClasses))
	done()
	if err != nil {
		return nil, err
	}
	sandbox, err := e.Runtime.PodSandboxStatus(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("querying the new sandbox: %w", err)
	}
	if sandbox.Labels[runtime.LabelInstance] != config.Labels[runtime.LabelInstance] ||
		sandbox.Annotations[runtime.AnnotationHash] != config.Annotations[runtime.AnnotationHash] {
		return nil, fmt.Errorf("sandbox %s has this name: %w", id, runtime.ErrNameReserved)
	}
	return &sandbox, nil
}

// nodeNow returns the node with its present DNS configuration, because a host may get it
// long after podd was started.
func (e *Runner) nodeNow(s Input) (render.Node, error) {
	node := *s.Node
	if e.DNS == nil {
		return node, nil
	}
	var err error
	node.DNS, err = e.DNS()
	return node, err
}

// cancelDelay is how long the runtime may continue a start after the start was canceled or
// podd received a signal to stop.
const cancelDelay = 10 * time.Second

// withDelayedCancel returns a context that is canceled cancelDelay after ctx. If a caller
// cancels a start in progress, the runtime kills what it has begun, and does not always
// clean up. done releases the context.
func withDelayedCancel(ctx context.Context) (whole context.Context, done func()) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		late := time.NewTimer(cancelDelay)
		defer late.Stop()
		select {
		case <-late.C:
			cancel()
		case <-whole.Done():
		}
	})
	return whole, func() { stop(); cancel() }
}
