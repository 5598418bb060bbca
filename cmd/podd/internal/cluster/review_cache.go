package cluster

import (
	"crypto/sha256"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"
)

// maxCached limits the cached results of each kind. Positive and negative results have separate
// caches, so that a flood of unknown tokens does not evict known ones.
const maxCached = 1024

// A reviewCache caches the results of reviews. Concurrent requests with the same key
// share one call. It is safe for concurrent use.
type reviewCache[V any] struct {
	positive, negative       *lru.Cache // by digest of the input, which may contain a token
	positiveTTL, negativeTTL time.Duration
	calls                    singleflight.Group
}

// A cachedResult is a result with its expiration.
type cachedResult[V any] struct {
	value    V
	positive bool
	until    time.Time
}

// newReviewCache returns a cache that stores positive and negative results for the given
// durations.
func newReviewCache[V any](positiveTTL, negativeTTL time.Duration) *reviewCache[V] {
	return &reviewCache[V]{positive: lru.New(maxCached), negative: lru.New(maxCached), positiveTTL: positiveTTL, negativeTTL: negativeTTL}
}

// get returns the cached result for an input, or else calls review. Errors are not cached.
func (c *reviewCache[V]) get(input []byte, review func() (value V, positive bool, err error)) (V, bool, error) {
	key := sha256.Sum256(input)
	if cached, ok := c.lookup(key); ok {
		return cached.value, cached.positive, nil
	}
	got, err, _ := c.calls.Do(string(key[:]), func() (any, error) {
		if cached, ok := c.lookup(key); ok { // stored by a call in the meantime
			return cached, nil
		}
		value, positive, err := review()
		if err != nil {
			return nil, err
		}
		return c.store(key, cachedResult[V]{value: value, positive: positive}), nil
	})
	if err != nil {
		var none V
		return none, false, err
	}
	result := got.(cachedResult[V])
	return result.value, result.positive, nil
}

// lookup returns a cached result that has not expired.
func (c *reviewCache[V]) lookup(key [sha256.Size]byte) (cachedResult[V], bool) {
	for _, cache := range []*lru.Cache{c.positive, c.negative} {
		if got, ok := cache.Get(key); ok && time.Now().Before(got.(cachedResult[V]).until) {
			return got.(cachedResult[V]), true
		}
	}
	return cachedResult[V]{}, false
}

// store stores a result and removes one of the other kind.
func (c *reviewCache[V]) store(key [sha256.Size]byte, result cachedResult[V]) cachedResult[V] {
	cache, other, ttl := c.positive, c.negative, c.positiveTTL
	if !result.positive {
		cache, other, ttl = other, cache, c.negativeTTL
	}
	result.until = time.Now().Add(ttl)
	other.Remove(key)
	cache.Add(key, result)
	return result
}
