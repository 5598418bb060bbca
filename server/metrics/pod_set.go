package metrics

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// A podSet is a set of the UIDs of pods. It is safe for concurrent use.
type podSet struct {
	mu   sync.Mutex // guards uids
	uids map[types.UID]bool
}

func newPodSet() *podSet { return &podSet{uids: map[types.UID]bool{}} }

// add adds a pod, and reports whether the set did not contain it.
func (s *podSet) add(uid types.UID) (isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isNew = !s.uids[uid]
	s.uids[uid] = true
	return isNew
}

// remove removes a pod, and reports whether the set contained it.
func (s *podSet) remove(uid types.UID) (wasPresent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wasPresent = s.uids[uid]
	delete(s.uids, uid)
	return wasPresent
}
