package eventsender

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// podd sends up to spamBurst events about an object at once, and then one event every
// spamInterval. Normal events and warnings are counted separately. The kubelet has the same
// limits.
const (
	spamBurst    = 25
	spamInterval = 5 * time.Minute
)

// maxSpamBuckets limits the number of buckets in the filter.
const maxSpamBuckets = 4096

// A spamKey identifies the events that share a bucket.
type spamKey struct {
	object v1.ObjectReference
	kind   string // v1.EventTypeNormal or v1.EventTypeWarning
}

// A tokenBucket limits the rate of events. tokens is the number of tokens that it contained at the
// time updatedAt.
type tokenBucket struct {
	tokens    float64
	updatedAt time.Time
}

// refill returns the bucket with the tokens that it contains at the current time.
func (b tokenBucket) refill(now time.Time) tokenBucket {
	newTokens := float64(max(0, now.Sub(b.updatedAt))) / float64(spamInterval)
	return tokenBucket{min(spamBurst, b.tokens+newTokens), now}
}

// A spamFilter contains a bucket for each object with recent events.
type spamFilter map[spamKey]tokenBucket

// allows reports whether an event may be sent now. If it returns true, it removes a token from
// the event's bucket.
func (f spamFilter) allows(e *v1.Event, now time.Time) bool {
	key := spamKey{e.InvolvedObject, e.Type}
	key.object.FieldPath = ""
	b, exists := f[key]
	if !exists {
		b = tokenBucket{spamBurst, now}
		f.shrink(now)
	}
	b = b.refill(now)
	isAllowed := b.tokens >= 1
	if isAllowed {
		b.tokens--
	}
	f[key] = b
	return isAllowed
}

// shrink removes the full buckets if the filter has maxSpamBuckets entries. If it then still has
// maxSpamBuckets entries, shrink removes all buckets.
func (f spamFilter) shrink(now time.Time) {
	if len(f) < maxSpamBuckets {
		return
	}
	for key, b := range f {
		if b.refill(now).tokens >= spamBurst {
			delete(f, key)
		}
	}
	if len(f) >= maxSpamBuckets {
		clear(f)
	}
}
