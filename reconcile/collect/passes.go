package collect

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Passes merges removals: those that arrive while a pass over the logs is under way
// share the next one. A pass reads the names of all logs of the node, so removing
// thousands of pods one by one would read millions of names. The zero value is ready
// for use; methods may be called concurrently.
type Passes struct {
	mu   sync.Mutex // guards the following fields
	next *pass      // not started; nil if no caller waits for one
	last *pass      // the newest, started or not; nil if there was none
}

type pass struct {
	uids   sets.Set[types.UID]
	before *pass         // nil if there is none
	done   chan struct{} // closed after failed was set
	failed failures
}

// do removes what belongs to uid and returns the errors that concern it. One of the
// callers that wait calls remove for all of them; the others wait for its result. On nil
// Passes, do calls remove with uid alone.
func (p *Passes) do(uid types.UID, remove func(sets.Set[types.UID]) failures) error {
	if p == nil {
		return remove(sets.New(uid)).about(uid)
	}
	own, first := p.join(uid)
	if first {
		if own.before != nil {
			<-own.before.done
		}
		p.begin(own)
		own.failed = remove(own.uids)
		close(own.done)
	}
	<-own.done
	return own.failed.about(uid)
}

// join adds uid to the next pass, and reports whether it is the first.
func (p *Passes) join(uid types.UID) (next *pass, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next, first = &pass{uids: sets.New[types.UID](), before: p.last, done: make(chan struct{})}, true
		p.last = p.next
	}
	p.next.uids.Insert(uid)
	return p.next, first
}

// begin closes a pass to further callers and forgets the one before it.
func (p *Passes) begin(own *pass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, own.before = nil, nil
}
