package effect

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// A rejectedSizeError is the error of a resize that the runtime does not accept, for example because
// one of its NRI plugins rejects it.
type rejectedSizeError struct{ err error }

func (e *rejectedSizeError) Error() string {
	return "the container runtime rejected the new size of the pod (UpdatePodSandboxResources): " + e.err.Error()
}

func (e *rejectedSizeError) Unwrap() error { return e.err }

// raiseCgroupLimits raises the limits of a pod's cgroup during a resize of the pod, so that they
// allow both the actual and the desired size of the pod. This is necessary because on cgroup v1 no
// container may have more quota than its pod. sandboxID is the ID of the pod's sandbox. If the limits
// rise, raiseCgroupLimits announces them to the runtime first. It returns a rejectedSizeError if the
// runtime does not accept them.
func (e *Runner) raiseCgroupLimits(ctx context.Context, s Input, sandboxID string) error {
	if !s.IsResizePending || e.MakeCgroup == nil {
		return nil
	}
	unlock, err := e.resizes.lock(ctx, s.Desired.UID)
	if err != nil {
		return err
	}
	defer unlock()
	raised := render.PodCgroup(s.Desired, *s.Node).WithLimitsAtLeast(render.PodCgroup(s.Actual, *s.Node))
	current, err := e.readCgroupLimits(raised)
	if err != nil {
		return err
	}
	return e.changeLimits(ctx, s, sandboxID, current, raised)
}

// resizePod sets the limits of the pod's cgroup to the size of the desired version. It checks the
// memory usage of the pod again, because the usage may have grown since the containers were
// resized. If the limits differ from the current limits, resizePod announces them to the runtime first.
func (e *Runner) resizePod(ctx context.Context, s Input, a plan.ResizePod) error {
	if e.MakeCgroup == nil {
		return nil
	}
	unlock, err := e.resizes.lock(ctx, s.Desired.UID)
	if err != nil {
		return err
	}
	defer unlock()
	cgroup := render.PodCgroup(s.Desired, *s.Node)
	if err := e.checkPodMemory(cgroup); err != nil {
		return fmt.Errorf("resizing the pod: %w", err)
	}
	// Without the desired shares, the shares from a cgroup v2 are inexact and mostly differ from the
	// desired ones. So podd also announces a new CPU request that does not change the weight.
	current, err := e.readCgroupLimits(render.Cgroup{Path: cgroup.Path, UsesSystemd: cgroup.UsesSystemd, Memory: cgroup.Memory})
	if err == nil {
		err = e.changeLimits(ctx, s, a.SandboxID, current, cgroup)
	}
	if err != nil {
		return fmt.Errorf("resizing the pod: %w", err)
	}
	return nil
}

// changeLimits announces limits to the runtime, and sets them on the cgroup of a pod whose limits are
// current. If it cannot set them, it announces the current limits. If the limits do not change,
// changeLimits announces nothing. The kubelet does the same, but separately for memory, CPU limits and
// CPU requests.
func (e *Runner) changeLimits(ctx context.Context, s Input, sandboxID string, current, limits render.Cgroup) error {
	announce := func(c render.Cgroup) error {
		overhead, resources := render.SandboxUpdate(*s.Node, s.Desired.Object, c)
		return e.updateSandboxResources(ctx, sandboxID, overhead, resources)
	}
	if !limits.Changes(current) {
		return e.setCgroupLimits(limits)
	}
	if err := announce(limits.MergedInto(current)); err != nil {
		if isUndecided(err) {
			return err
		}
		return &rejectedSizeError{err}
	}
	err := e.setCgroupLimits(limits)
	if err == nil {
		return nil
	}
	if rollbackErr := announce(current); rollbackErr != nil {
		return fmt.Errorf("%w; announcing the current limits to the container runtime again failed: %v", err, rollbackErr)
	}
	return err
}

// isUndecided reports whether err, the error of an announcement, does not depend on the announced limits,
// so that the runtime has not rejected them.
func isUndecided(err error) bool {
	for _, kind := range []error{runtime.ErrUnavailable, runtime.ErrNotFound, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// updateSandboxResources announces new resources of a sandbox to the runtime. It returns no error if
// the runtime does not implement the call, because then the runtime has no plugins to inform.
func (e *Runner) updateSandboxResources(ctx context.Context, sandboxID string, overhead, resources *cri.LinuxContainerResources) error {
	err := e.Runtime.UpdatePodSandboxResources(ctx, sandboxID, overhead, resources)
	if errors.Is(err, runtime.ErrUnimplemented) && !errors.Is(err, runtime.ErrUnavailable) {
		return nil
	}
	return err
}

// readCgroupLimits returns the current limits of the cgroup c.Path.
func (e *Runner) readCgroupLimits(c render.Cgroup) (render.Cgroup, error) {
	if e.ReadCgroup == nil {
		return render.Cgroup{}, nil
	}
	return e.ReadCgroup(c)
}

// setCgroupLimits creates the cgroup of a pod, or sets its limits if it exists.
func (e *Runner) setCgroupLimits(c render.Cgroup) error {
	if e.MakeCgroup == nil {
		return nil
	}
	return e.MakeCgroup(c)
}

// podLocks prevents concurrent changes of the cgroup of a pod, because several containers of a pod may
// be resized at the same time. The zero value is ready to use.
type podLocks struct {
	mu   sync.Mutex                  // guards held
	held map[types.UID]chan struct{} // by UID of the pod; each channel is closed when the lock is released
}

// lock waits until it has the lock of a pod, or until ctx is done. The caller must call unlock.
func (l *podLocks) lock(ctx context.Context, uid types.UID) (unlock func(), err error) {
	for {
		held := l.tryLock(uid)
		if held == nil {
			return func() { l.unlock(uid) }, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-held:
		}
	}
}

// tryLock takes the lock of a pod and returns nil. If the lock is held, it returns a channel that is
// closed when the lock is released.
func (l *podLocks) tryLock(uid types.UID) (held <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.held[uid]; ok {
		return c
	}
	if l.held == nil {
		l.held = map[types.UID]chan struct{}{}
	}
	l.held[uid] = make(chan struct{})
	return nil
}

func (l *podLocks) unlock(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.held[uid])
	delete(l.held, uid)
}
