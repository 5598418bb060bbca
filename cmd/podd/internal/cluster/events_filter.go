package cluster

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// As in the kubelet, up to spamBurst events for an object are sent at once, and then one every
// spamInterval, separately for normal events and warnings.
const (
	spamBurst    = 25
	spamInterval = 5 * time.Minute
)

// maxObjects limits the entries of the filter.
const maxObjects = 4096

// A spamKey identifies the events that share a bucket.
type spamKey struct {
	object v1.ObjectReference
	kind   string // v1.EventTypeNormal or v1.EventTypeWarning
}

// A bucket is a token bucket that had left tokens at the time since.
type bucket struct {
	left  float64
	since time.Time
}

// at returns the bucket at the time now.
func (b bucket) at(now time.Time) bucket {
	filled := float64(max(0, now.Sub(b.since))) / float64(spamInterval)
	return bucket{min(spamBurst, b.left+filled), now}
}

// A spamFilter contains a bucket for each object with recent events.
type spamFilter map[spamKey]bucket

// allows reports whether an event may be sent now, and takes a token.
func (f spamFilter) allows(e *v1.Event, now time.Time) bool {
	key := spamKey{e.InvolvedObject, e.Type}
	key.object.FieldPath = ""
	b, exists := f[key]
	if !exists {
		b = bucket{spamBurst, now}
		f.shrink(now)
	}
	b = b.at(now)
	allowed := b.left >= 1
	if allowed {
		b.left--
	}
	f[key] = b
	return allowed
}

// shrink removes the full buckets if there are too many, or all if none is full.
func (f spamFilter) shrink(now time.Time) {
	if len(f) < maxObjects {
		return
	}
	for key, b := range f {
		if b.at(now).left >= spamBurst {
			delete(f, key)
		}
	}
	if len(f) >= maxObjects {
		clear(f)
	}
}
