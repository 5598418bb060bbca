package cluster

import (
	"crypto/sha256"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"
)

// maxCached limits the cached results of each kind. Positive and negative results have
// separate caches, so that requests with made-up tokens do not evict valid ones.
const maxCached = 1024

// A reviewCache caches the results of reviews. Concurrent requests with the same key
// share one call. It is safe for concurrent use.
type reviewCache[V any] struct {
	positive, negative       *lru.Cache // by digest, because keys contain tokens
	positiveTTL, negativeTTL time.Duration
	calls                    singleflight.Group
}

type cachedResult[V any] struct {
	value    V
	positive bool
	until    time.Time
}

func newReviewCache[V any](yesFor, noFor time.Duration) *reviewCache[V] {
	return &reviewCache[V]{positive: lru.New(maxCached), negative: lru.New(maxCached), positiveTTL: yesFor, negativeTTL: noFor}
}

// get returns the cached result for what, or calls ask. Errors are not cached.
func (a *reviewCache[V]) get(what []byte, ask func() (value V, yes bool, err error)) (V, bool, error) {
	key := sha256.Sum256(what)
	if known, ok := a.lookup(key); ok {
		return known.value, known.positive, nil
	}
	got, err, _ := a.calls.Do(string(key[:]), func() (any, error) {
		if known, ok := a.lookup(key); ok { // it was stored in the meantime
			return known, nil
		}
		value, yes, err := ask()
		if err != nil {
			return nil, err
		}
		return a.store(key, cachedResult[V]{value: value, positive: yes}), nil
	})
	if err != nil {
		var none V
		return none, false, err
	}
	is := got.(cachedResult[V])
	return is.value, is.positive, nil
}

func (a *reviewCache[V]) lookup(key [sha256.Size]byte) (cachedResult[V], bool) {
	for _, kept := range []*lru.Cache{a.positive, a.negative} {
		if got, ok := kept.Get(key); ok && time.Now().Before(got.(cachedResult[V]).until) {
			return got.(cachedResult[V]), true
		}
	}
	return cachedResult[V]{}, false
}

// store stores a result and removes one of the other kind.
func (a *reviewCache[V]) store(key [sha256.Size]byte, is cachedResult[V]) cachedResult[V] {
	kept, other, long := a.positive, a.negative, a.positiveTTL
	if !is.positive {
		kept, other, long = other, kept, a.negativeTTL
	}
	is.until = time.Now().Add(long)
	other.Remove(key)
	kept.Add(key, is)
	return is
}
