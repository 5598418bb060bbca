package cri

import (
	"context"
	"errors"
	"sync"

	"podd/runtime"
)

// maxLate limits how many status calls of one kind may continue after their pass, so that a
// slow runtime is not overloaded.
const maxLate = 16

// errLate is the result of a status call to which the runtime has not responded yet.
var errLate = errors.New("the runtime has not responded yet")

// inquiries manages the status calls of one kind. A call to which the runtime does not
// respond within its pass continues, and a later pass takes its result, so that a runtime
// that is slow for every call can still be observed. At most one call per object is in
// progress. Safe for concurrent use.
type inquiries[T any] struct {
	query func(ctx context.Context, id string) (T, error)

	mu    sync.Mutex // guards all following fields and those of each inquiry
	byID  map[string]*inquiry[T]
	late  int            // calls in progress of passes that have ended
	calls sync.WaitGroup // of all of them
}

// inquiry is one status call.
type inquiry[T any] struct {
	about any           // the state for which it was made
	ended chan struct{} // closed when it has ended
	isLate,
	hasEnded bool
	found T
	err   error
}

func newInquiries[T any](query func(context.Context, string) (T, error)) *inquiries[T] {
	return &inquiries[T]{query: query, byID: map[string]*inquiry[T]{}}
}

// get returns the status of an object; about is its state in the list. It waits until pass
// is done and then returns errLate. The call continues until ctx is done, and onEnd is
// called when it ends. get does not wait for a call that is already late.
func (q *inquiries[T]) get(ctx, pass context.Context, id string, about any, onEnd func()) (T, error) {
	i, isNew := q.begin(ctx, pass, id, about, onEnd)
	if isNew {
		select {
		case <-i.ended:
		case <-pass.Done():
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i.hasEnded {
		if q.byID[id] == i {
			delete(q.byID, id)
		}
		if !isNew && errors.Is(i.err, runtime.ErrUnavailable) {
			return i.found, errors.New(i.err.Error()) // it was unreachable then, but this pass could list
		}
		return i.found, i.err
	}
	if !i.isLate {
		i.isLate = true
		q.late++
	}
	return i.found, errLate
}

// begin returns the call in progress, or starts one.
func (q *inquiries[T]) begin(ctx, pass context.Context, id string, about any, onEnd func()) (i *inquiry[T], isNew bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i = q.byID[id]; i != nil && i.about == about {
		return i, false
	}
	i = &inquiry[T]{about: about, ended: make(chan struct{})}
	if pass.Err() != nil || q.late >= maxLate {
		i.hasEnded, i.err = true, errLate // not started; the observer tries again
		return i, false
	}
	q.byID[id] = i
	q.calls.Go(func() {
		found, err := q.query(ctx, id)
		if q.end(i, found, err) {
			onEnd()
		}
	})
	return i, true
}

// end records the result of a call and reports whether its pass has ended.
func (q *inquiries[T]) end(i *inquiry[T], found T, err error) (late bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i.found, i.err, i.hasEnded = found, err, true
	close(i.ended)
	if i.isLate {
		q.late--
	}
	return i.isLate
}

// forget drops the calls about objects that no longer need a status.
func (q *inquiries[T]) forget(doubts map[string]doubt) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id := range q.byID {
		if _, kept := doubts[id]; !kept {
			delete(q.byID, id)
		}
	}
}

// inProgress reports whether there is a late call about an object and its result has not
// been taken.
func (q *inquiries[T]) inProgress(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byID[id] != nil
}
