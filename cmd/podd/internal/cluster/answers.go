package cluster

import (
	"crypto/sha256"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"
)

// mostAnswers is how many of each kind are kept. Those that say yes and those that
// say no do not drive each other out: who makes up tokens takes no room of those
// that count.
const mostAnswers = 1024

// answers remembers for a while what the cluster said. What is asked for by several
// at once is asked for once. Safe for concurrent use.
type answers[V any] struct {
	yes, no       *lru.Cache // by digest: tokens are asked for
	yesFor, noFor time.Duration
	asking        singleflight.Group
}

type verdict[V any] struct {
	value V
	yes   bool
	until time.Time
}

func newAnswers[V any](yesFor, noFor time.Duration) *answers[V] {
	return &answers[V]{yes: lru.New(mostAnswers), no: lru.New(mostAnswers), yesFor: yesFor, noFor: noFor}
}

// get is the answer to what, which ask gets where none counts any more. An error is
// nothing to remember.
func (a *answers[V]) get(what []byte, ask func() (value V, yes bool, err error)) (V, bool, error) {
	key := sha256.Sum256(what)
	if known, ok := a.known(key); ok {
		return known.value, known.yes, nil
	}
	got, err, _ := a.asking.Do(string(key[:]), func() (any, error) {
		if known, ok := a.known(key); ok { // since it was looked for
			return known, nil
		}
		value, yes, err := ask()
		if err != nil {
			return nil, err
		}
		return a.learn(key, verdict[V]{value: value, yes: yes}), nil
	})
	if err != nil {
		var none V
		return none, false, err
	}
	is := got.(verdict[V])
	return is.value, is.yes, nil
}

func (a *answers[V]) known(key [sha256.Size]byte) (verdict[V], bool) {
	for _, kept := range []*lru.Cache{a.yes, a.no} {
		if got, ok := kept.Get(key); ok && time.Now().Before(got.(verdict[V]).until) {
			return got.(verdict[V]), true
		}
	}
	return verdict[V]{}, false
}

// learn keeps the newest answer alone.
func (a *answers[V]) learn(key [sha256.Size]byte, is verdict[V]) verdict[V] {
	kept, other, long := a.yes, a.no, a.yesFor
	if !is.yes {
		kept, other, long = other, kept, a.noFor
	}
	is.until = time.Now().Add(long)
	other.Remove(key)
	kept.Add(key, is)
	return is
}
