package review

import (
	"crypto/sha256"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"
)

// maxCachedResults limits the number of positive and of negative results in a reviewCache. Positive
// and negative results have separate caches, so that a flood of unknown tokens does not evict valid
// tokens.
const maxCachedResults = 1024

// A reviewCache caches the results of reviews. A result is positive if a token is valid or an
// access is allowed. Concurrent requests with the same input share one review. A reviewCache is
// safe for concurrent use.
type reviewCache[V any] struct {
	positive, negative       *lru.Cache // by digest of the input, because the input may contain a token
	positiveTTL, negativeTTL time.Duration
	calls                    singleflight.Group
}

// A cachedResult is the result of a review with its expiration time.
type cachedResult[V any] struct {
	value      V
	isPositive bool
	expiresAt  time.Time
}

// newReviewCache returns a cache that stores positive results for positiveTTL and negative
// results for negativeTTL. With the duration 0, it does not store results of this kind.
func newReviewCache[V any](positiveTTL, negativeTTL time.Duration) *reviewCache[V] {
	return &reviewCache[V]{positive: lru.New(maxCachedResults), negative: lru.New(maxCachedResults), positiveTTL: positiveTTL, negativeTTL: negativeTTL}
}

// get returns the cached result for an input. If no result is cached, get calls review and caches
// the result, but not an error.
func (c *reviewCache[V]) get(input []byte, review func() (value V, positive bool, err error)) (value V, positive bool, err error) {
	key := sha256.Sum256(input)
	if hit, ok := c.lookup(key); ok {
		return hit.value, hit.isPositive, nil
	}
	shared, err, _ := c.calls.Do(string(key[:]), func() (any, error) {
		if hit, ok := c.lookup(key); ok { // another call has stored a result in the meantime
			return hit, nil
		}
		value, positive, err := review()
		if err != nil {
			return nil, err
		}
		return c.store(key, cachedResult[V]{value: value, isPositive: positive}), nil
	})
	if err != nil {
		var zero V
		return zero, false, err
	}
	result := shared.(cachedResult[V])
	return result.value, result.isPositive, nil
}

// lookup returns the cached result for a key. ok is false if the cache has no result or the
// result has expired.
func (c *reviewCache[V]) lookup(key [sha256.Size]byte) (result cachedResult[V], ok bool) {
	for _, cache := range []*lru.Cache{c.positive, c.negative} {
		if entry, ok := cache.Get(key); ok && time.Now().Before(entry.(cachedResult[V]).expiresAt) {
			return entry.(cachedResult[V]), true
		}
	}
	return cachedResult[V]{}, false
}

// store sets the expiration time of a result, caches the result and returns it. It removes a
// result of the opposite kind with the same key.
func (c *reviewCache[V]) store(key [sha256.Size]byte, result cachedResult[V]) cachedResult[V] {
	cache, otherCache, ttl := c.positive, c.negative, c.positiveTTL
	if !result.isPositive {
		cache, otherCache, ttl = otherCache, cache, c.negativeTTL
	}
	result.expiresAt = time.Now().Add(ttl)
	otherCache.Remove(key)
	if ttl > 0 {
		cache.Add(key, result)
	}
	return result
}
