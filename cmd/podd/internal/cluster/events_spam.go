package cluster

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// The cluster is told of an object 25 times at once and then once in five minutes,
// as by a kubelet, of what is wrong apart from what is as it should be.
const (
	spamBurst = 25
	spamEvery = 5 * time.Minute
)

// mostObjects bounds what the filter remembers.
const mostObjects = 4096

type spamKey struct {
	object v1.ObjectReference
	kind   string
}

// bucket has so much left since then.
type bucket struct {
	left  float64
	since time.Time
}

// at is the bucket as it has filled until now.
func (b bucket) at(now time.Time) bucket {
	filled := float64(max(0, now.Sub(b.since))) / float64(spamEvery)
	return bucket{min(spamBurst, b.left+filled), now}
}

// spamFilter has a bucket for each object of which was told of late.
type spamFilter map[spamKey]bucket

// lets says that an event may be sent now, and counts it.
func (f spamFilter) lets(e *v1.Event, now time.Time) bool {
	key := spamKey{e.InvolvedObject, e.Type}
	key.object.FieldPath = ""
	b, known := f[key]
	if !known {
		b = bucket{spamBurst, now}
		f.shrink(now)
	}
	b = b.at(now)
	may := b.left >= 1
	if may {
		b.left--
	}
	f[key] = b
	return may
}

// shrink forgets the full ones, and all where none is.
func (f spamFilter) shrink(now time.Time) {
	if len(f) < mostObjects {
		return
	}
	for key, b := range f {
		if b.at(now).left >= spamBurst {
			delete(f, key)
		}
	}
	if len(f) >= mostObjects {
		clear(f)
	}
}
