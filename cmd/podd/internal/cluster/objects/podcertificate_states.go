package objects

import (
	"sync"
	"time"

	"podd/cmd/podd/internal/cluster/podcert"
)

// podCertificateStates contains the states of all pod certificates. The zero value is empty. It is
// safe for concurrent use.
type podCertificateStates struct {
	mu     sync.Mutex // guards states
	states map[*lookup]podcert.State
}

func (s *podCertificateStates) set(l *lookup, state podcert.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states == nil {
		s.states = map[*lookup]podcert.State{}
	}
	s.states[l] = state
}

func (s *podCertificateStates) remove(l *lookup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, l)
}

// A PodCertificateState consists of a signer and a state of its pod certificates, such as "fresh".
type PodCertificateState struct{ Signer, State string }

// CountPodCertificates returns the number of volume sources with a pod certificate by state.
// It may be called concurrently.
func (r *Resolver) CountPodCertificates() map[PodCertificateState]int {
	s, now, counts := &r.podCertificates, time.Now(), map[PodCertificateState]int{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range s.states {
		counts[PodCertificateState{state.Signer, state.Name(now)}]++
	}
	return counts
}
