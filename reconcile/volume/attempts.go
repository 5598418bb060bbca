package volume

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errStill is the error of an attempt while an earlier one that was given up is
// still out.
var errStill = errors.New("an earlier attempt is still waiting")

// Attempts are calls into the kernel that a silent server may never let return.
// Nothing can end these, so that there is one at a time for each subject: however
// often podd tries again, no more than that one waits. A nil *Attempts bounds
// the time of each and knows of no other.
type Attempts struct {
	mu    sync.Mutex
	under map[string]*attempt // guarded by mu
}

// attempt is one that is under way.
type attempt struct{ ended, givenUp chan struct{} }

// do gives call up after the limit with errSilent, and when ctx ends with what
// ended it. The goroutine outlives that until the server speaks again, for there
// is nothing that could end it before: call owns what it uses, and changes
// nothing any more once its own ctx is done.
func (a *Attempts) do(ctx context.Context, limit time.Duration, subject string, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	if a == nil {
		a = &Attempts{}
	}
	mine := &attempt{ended: make(chan struct{}), givenUp: make(chan struct{})}
	for before := a.begin(subject, mine); before != nil; before = a.begin(subject, mine) {
		select {
		case <-before.ended:
		case <-before.givenUp:
			return errStill
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	result := make(chan error, 1)
	go func() {
		err := call(ctx)
		a.end(subject)
		close(mine.ended)
		result <- err
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		close(mine.givenUp)
		return context.Cause(ctx)
	}
}

// begin gives the attempt that has to end before.
func (a *Attempts) begin(subject string, mine *attempt) *attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if before := a.under[subject]; before != nil {
		return before
	}
	if a.under == nil {
		a.under = map[string]*attempt{}
	}
	a.under[subject] = mine
	return nil
}

func (a *Attempts) end(subject string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.under, subject)
}
