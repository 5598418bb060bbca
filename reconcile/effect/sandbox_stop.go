package effect

import (
	"context"
	"errors"
	"time"

	"podd/runtime"
)

// exitQueryTimeout is how long an effect that stops a sandbox waits for the exit codes of its
// containers. A later observation reports the exit codes that are missing after this time.
const exitQueryTimeout = 2 * time.Second

// stopSandbox kills the containers of the sandbox with ID id, and stops the sandbox. If exit codes
// are needed (needsExitCodes), containers contains the statuses of the stopped containers that the
// runtime reports within exitQueryTimeout.
func (e *Runner) stopSandbox(ctx context.Context, s Input, id string) (containers []runtime.Container, err error) {
	if err := e.killContainers(ctx, s.Observed, id); err != nil {
		return nil, err
	}
	if err := e.Runtime.StopPodSandbox(ctx, id); err != nil {
		return nil, err
	}
	queryCtx, cancel := context.WithTimeout(ctx, exitQueryTimeout)
	defer cancel()
	for i := range s.Observed {
		inc := &s.Observed[i]
		if inc.ID != id || !s.needsExitCodes(inc) {
			continue
		}
		for _, c := range inc.Containers {
			if c.State == runtime.Exited || c.State == runtime.ExitCodeUnknown {
				continue
			}
			if status, err := e.Runtime.ContainerStatus(queryCtx, c.ID); err == nil {
				containers = append(containers, status)
			}
		}
	}
	return containers, nil
}

// needsExitCodes reports whether the phase of the pod may depend on the exit codes of incarnation
// inc.
func (s Input) needsExitCodes(inc *runtime.Incarnation) bool {
	if s.Desired != nil {
		return inc.UID == s.Desired.UID
	}
	return s.Previous != nil && s.Previous.Traits.HasStateAtSource && inc.UID == s.Previous.UID
}

// removeSandbox removes a sandbox. If released is false, it stops the sandbox first, because the
// removal of a sandbox that exited by itself does not free its addresses.
func (e *Runner) removeSandbox(ctx context.Context, observed []runtime.Incarnation, id string, released bool) error {
	if !released {
		if err := e.killContainers(ctx, observed, id); err != nil {
			return err
		}
		if err := e.Runtime.StopPodSandbox(ctx, id); err != nil {
			return err
		}
	}
	err := e.Runtime.RemovePodSandbox(ctx, id)
	if errors.Is(err, runtime.ErrTaskLost) && e.KillShim != nil {
		// RemovePodSandbox has failed with ErrTaskLost. After the shim is killed and the runtime
		// has cleaned up, the next attempt succeeds.
		_, killErr := e.KillShim(id)
		err = errors.Join(err, killErr)
	}
	return err
}
