package volume

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errPending is the error if do did not run the call, because an earlier call for the same subject
// has not returned. The earlier call has timed out or was canceled.
var errPending = errors.New("an earlier attempt has not finished")

// A CallLimiter limits system calls that may never return because a server does not respond. These
// calls cannot be interrupted. So the limiter allows only one call at a time for each subject, such
// as a mount, and retries do not accumulate blocked threads. A nil *CallLimiter only applies
// timeouts.
type CallLimiter struct {
	mu       sync.Mutex // guards attempts
	attempts map[string]*attempt
}

// An attempt is a call in progress.
type attempt struct {
	returned  chan struct{} // closed when the call has returned
	abandoned chan struct{} // closed when CallLimiter.do has returned while the call continues
}

// do runs call and returns its error. It returns errTimeout after limit, and the cause of ctx when
// ctx is done. For each subject, only one call runs at a time: do first waits until an earlier call
// has returned. If do has already returned for the earlier call, because of a timeout or its ctx,
// do returns errPending.
//
// After a timeout, call continues in its goroutine until the server responds, because it cannot be
// interrupted. So call must own the resources that it uses, and must change nothing after its ctx
// is done.
func (a *CallLimiter) do(ctx context.Context, limit time.Duration, subject string, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	if a == nil {
		a = &CallLimiter{}
	}
	newAttempt := &attempt{returned: make(chan struct{}), abandoned: make(chan struct{})}
	for earlierAttempt := a.tryBegin(subject, newAttempt); earlierAttempt != nil; earlierAttempt = a.tryBegin(subject, newAttempt) {
		select {
		case <-earlierAttempt.returned:
		case <-earlierAttempt.abandoned:
			return errPending
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	result := make(chan error, 1)
	go func() {
		err := call(ctx)
		a.end(subject)
		close(newAttempt.returned)
		result <- err
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		close(newAttempt.abandoned)
		return context.Cause(ctx)
	}
}

// tryBegin registers newAttempt as the attempt for subject and returns nil. If an earlier attempt
// is registered, tryBegin returns it and does not register newAttempt.
func (a *CallLimiter) tryBegin(subject string, newAttempt *attempt) (earlierAttempt *attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if earlierAttempt := a.attempts[subject]; earlierAttempt != nil {
		return earlierAttempt
	}
	if a.attempts == nil {
		a.attempts = map[string]*attempt{}
	}
	a.attempts[subject] = newAttempt
	return nil
}

func (a *CallLimiter) end(subject string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.attempts, subject)
}
