package cri

import (
	"context"
	"errors"
	"sync"

	"podd/runtime"
)

// maxLateCalls limits how many status calls of one kind may continue after the end of the pass that
// made them, so that a slow runtime is not overloaded.
const maxLateCalls = 16

// errLate is the result of a status call to which the runtime has not responded yet.
var errLate = errors.New("the runtime has not responded yet")

// statusCalls manages the status calls for sandboxes or for containers. If the runtime does
// not respond within the pass that makes a call, the call continues and a later pass uses
// its result. Therefore a runtime that is slow for every call can still be observed. At
// most one call per object is in progress. statusCalls is safe for concurrent use.
type statusCalls[T any] struct {
	query func(ctx context.Context, id string) (T, error)

	mu        sync.Mutex // guards all following fields and the fields of each statusCall
	byID      map[string]*statusCall[T]
	lateCount int            // number of calls in progress whose pass has ended
	running   sync.WaitGroup // all calls in progress
}

// A statusCall is a call of PodSandboxStatus or ContainerStatus.
type statusCall[T any] struct {
	listedState any           // the object's state in the list when the call was made
	done        chan struct{} // closed when the call has returned
	isLate,
	isDone bool
	status T
	err    error
}

func newStatusCalls[T any](query func(context.Context, string) (T, error)) *statusCalls[T] {
	return &statusCalls[T]{query: query, byID: map[string]*statusCall[T]{}}
}

// get returns the status of an object. listedState is the object's state in the list. If passCtx is
// done before the runtime responds, get returns errLate. The call then continues until ctx is done,
// and onLate is called when it has returned. If a call from an earlier pass is in progress, get
// does not wait for it and returns errLate.
func (q *statusCalls[T]) get(ctx, passCtx context.Context, id string, listedState any, onLate func()) (T, error) {
	i, isNew := q.start(ctx, passCtx, id, listedState, onLate)
	if isNew {
		select {
		case <-i.done:
		case <-passCtx.Done():
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i.isDone {
		if q.byID[id] == i {
			delete(q.byID, id)
		}
		if !isNew && errors.Is(i.err, runtime.ErrUnavailable) {
			// The runtime was unreachable when the call was made in an earlier pass. It was
			// reachable in this pass, so the result must not match ErrUnavailable.
			return i.status, errors.New(i.err.Error())
		}
		return i.status, i.err
	}
	if !i.isLate {
		i.isLate = true
		q.lateCount++
	}
	return i.status, errLate
}

// start returns the call in progress for an object in this state, or starts a new one.
func (q *statusCalls[T]) start(ctx, passCtx context.Context, id string, listedState any, onLate func()) (i *statusCall[T], isNew bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i = q.byID[id]; i != nil && i.listedState == listedState {
		return i, false
	}
	i = &statusCall[T]{listedState: listedState, done: make(chan struct{})}
	if passCtx.Err() != nil || q.lateCount >= maxLateCalls {
		i.isDone, i.err = true, errLate // not started; the next pass tries again
		return i, false
	}
	q.byID[id] = i
	q.running.Go(func() {
		result, err := q.query(ctx, id)
		if q.finish(i, result, err) {
			onLate()
		}
	})
	return i, true
}

// finish records the result of a call. wasLate reports whether the pass that made the call ended
// before the call returned.
func (q *statusCalls[T]) finish(i *statusCall[T], result T, err error) (wasLate bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i.status, i.err, i.isDone = result, err, true
	close(i.done)
	if i.isLate {
		q.lateCount--
	}
	return i.isLate
}

// forget removes the calls for all objects except those in failedQueries, because the status of the
// other objects is no longer needed.
func (q *statusCalls[T]) forget(failedQueries map[string]failedQuery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id := range q.byID {
		if _, isFailed := failedQueries[id]; !isFailed {
			delete(q.byID, id)
		}
	}
}

// hasCall reports whether there is a call for this object that is in progress, or has
// returned a result that was not used yet.
func (q *statusCalls[T]) hasCall(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byID[id] != nil
}
