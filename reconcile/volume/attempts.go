package volume

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errPending is the error of an attempt while an earlier one, which timed out or was
// canceled, has not returned.
var errPending = errors.New("an earlier attempt is still waiting")

// Attempts limits system calls that may never return because a server does not respond.
// Such calls cannot be interrupted, so there is only one at a time for each subject, and
// retries do not accumulate blocked threads. A nil *Attempts only applies timeouts.
type Attempts struct {
	mu      sync.Mutex // guards running
	running map[string]*attempt
}

// An attempt is a call in progress.
type attempt struct{ ended, givenUp chan struct{} }

// do runs call and returns its error, errSilent after limit, or the cause of ctx when ctx
// is done. After a timeout, call continues in its goroutine until the server responds,
// because it cannot be interrupted. So call must own the resources that it uses, and must
// change nothing after its ctx is done.
func (a *Attempts) do(ctx context.Context, limit time.Duration, subject string, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	if a == nil {
		a = &Attempts{}
	}
	self := &attempt{ended: make(chan struct{}), givenUp: make(chan struct{})}
	for before := a.tryBegin(subject, self); before != nil; before = a.tryBegin(subject, self) {
		select {
		case <-before.ended:
		case <-before.givenUp:
			return errPending
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	result := make(chan error, 1)
	go func() {
		err := call(ctx)
		a.end(subject)
		close(self.ended)
		result <- err
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		close(self.givenUp)
		return context.Cause(ctx)
	}
}

// tryBegin registers self as the attempt for subject. If there is another one, it returns
// that one instead, which must end first.
func (a *Attempts) tryBegin(subject string, self *attempt) *attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if before := a.running[subject]; before != nil {
		return before
	}
	if a.running == nil {
		a.running = map[string]*attempt{}
	}
	a.running[subject] = self
	return nil
}

func (a *Attempts) end(subject string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, subject)
}
