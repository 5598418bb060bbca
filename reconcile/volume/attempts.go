package volume

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errPending is the error if an attempt was not made, because an earlier attempt that timed out or
// was canceled has not returned yet.
var errPending = errors.New("an earlier attempt has not finished")

// A CallLimiter limits system calls that may never return because a server does not respond. These
// calls cannot be interrupted. So there is only one call at a time for each subject, such as a
// mount, and retries do not accumulate blocked threads. A nil *CallLimiter only applies timeouts.
type CallLimiter struct {
	mu      sync.Mutex // guards running
	running map[string]*attempt
}

// An attempt is a call in progress.
type attempt struct {
	returned  chan struct{} // closed when the call has returned
	abandoned chan struct{} // closed when CallLimiter.do has returned while the call continues
}

// do runs call and returns its error. It returns errTimeout after limit, and the cause of ctx when
// ctx is done. For each subject, only one function runs at a time: do first waits until the
// function of an earlier attempt has returned. If the earlier attempt has timed out or was
// canceled, and its function is still running, do returns errPending.
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
	self := &attempt{returned: make(chan struct{}), abandoned: make(chan struct{})}
	for earlier := a.tryBegin(subject, self); earlier != nil; earlier = a.tryBegin(subject, self) {
		select {
		case <-earlier.returned:
		case <-earlier.abandoned:
			return errPending
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	result := make(chan error, 1)
	go func() {
		err := call(ctx)
		a.end(subject)
		close(self.returned)
		result <- err
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		close(self.abandoned)
		return context.Cause(ctx)
	}
}

// tryBegin registers self as the attempt for subject and returns nil. If there is an earlier
// attempt, tryBegin returns the earlier attempt and does not register self.
func (a *CallLimiter) tryBegin(subject string, self *attempt) (earlier *attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if earlier := a.running[subject]; earlier != nil {
		return earlier
	}
	if a.running == nil {
		a.running = map[string]*attempt{}
	}
	a.running[subject] = self
	return nil
}

func (a *CallLimiter) end(subject string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, subject)
}
