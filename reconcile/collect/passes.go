package collect

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// A RemovalBatcher merges removals of pods. All removals that are requested during a pass over the
// logs share the next pass. A pass reads the names of all logs of the node, so separate passes for
// thousands of pods would read millions of names. The zero value is ready for use. The methods may
// be called concurrently.
type RemovalBatcher struct {
	mu   sync.Mutex // guards the following fields
	next *pass      // the pass that has not started; nil if no caller waits for a pass
	last *pass      // the newest pass, started or not; nil if there was no pass
}

// A pass reads the names of all logs once and removes the logs of the pods in uids.
type pass struct {
	uids     sets.Set[types.UID]
	previous *pass         // the pass that must finish before this pass starts; nil if there is none
	done     chan struct{} // closed when the pass has finished and failed is set
	failed   failures
}

// removeShared calls remove to remove the logs of the pod with UID uid, and returns the errors that
// concern this pod. If several callers wait for the same pass, the first caller calls remove once
// with the UIDs of all callers. The other callers wait for the result. If p is nil, removeShared
// calls remove with uid alone.
func (p *RemovalBatcher) removeShared(uid types.UID, remove func(sets.Set[types.UID]) failures) error {
	if p == nil {
		return remove(sets.New(uid)).forPod(uid)
	}
	joinedPass, isFirst := p.join(uid)
	if isFirst {
		if joinedPass.previous != nil {
			<-joinedPass.previous.done
		}
		p.begin(joinedPass)
		joinedPass.failed = remove(joinedPass.uids)
		close(joinedPass.done)
	}
	<-joinedPass.done
	return joinedPass.failed.forPod(uid)
}

// join adds uid to the next pass and returns the pass. isFirst reports whether uid is the first UID
// of the pass. If it is, the caller must run the pass.
func (p *RemovalBatcher) join(uid types.UID) (joinedPass *pass, isFirst bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next, isFirst = &pass{uids: sets.New[types.UID](), previous: p.last, done: make(chan struct{})}, true
		p.last = p.next
	}
	p.next.uids.Insert(uid)
	return p.next, isFirst
}

// begin marks a pass as started, so that later callers join a new pass. It drops the reference to
// the earlier pass, so that finished passes are garbage-collected.
func (p *RemovalBatcher) begin(startedPass *pass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, startedPass.previous = nil, nil
}
