package pressure

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A Policy contains the thresholds of the node. The zero value has no threshold.
type Policy struct {
	// Thresholds contains the hard thresholds before the soft thresholds, and no threshold of
	// containerfs.
	Thresholds []Threshold
	// TransitionPeriod is the time for which a condition remains true after the last time at
	// which one of its thresholds was met.
	TransitionPeriod time.Duration
	// MaxPodGrace limits the grace period of a pod that is evicted because of a soft threshold.
	MaxPodGrace time.Duration
}

// A Threshold is a limit of a signal. It is comparable.
type Threshold struct {
	Signal Signal
	Limit  Limit
	// MinReclaim is the amount above Limit that must be available again before the node stops
	// reclaiming.
	MinReclaim Limit
	// GracePeriod is the time for which a soft threshold must be met before the node acts on it; 0
	// for a hard threshold.
	GracePeriod time.Duration
}

// IsHard reports whether the node acts on the threshold as soon as it is met.
func (t Threshold) IsHard() bool { return t.GracePeriod == 0 }

// String returns the threshold in the format of the flag --eviction-hard, with the grace period and
// the minimum reclaim.
func (t Threshold) String() string {
	text := string(t.Signal) + "<" + t.Limit.String()
	if !t.IsHard() {
		text += " for " + t.GracePeriod.String()
	}
	if t.MinReclaim != (Limit{}) {
		text += " reclaim " + t.MinReclaim.String()
	}
	return text
}

// A Limit is an amount or, if Amount is 0, a share of the capacity.
type Limit struct {
	// Amount is a number of bytes, inodes or processes.
	Amount int64
	// Share is a number from 0 to 1. It is a float32 as in the kubelet, so that podd and the
	// kubelet compute the same allocatable resources.
	Share float32
}

// AmountFor returns Amount or, if Amount is 0, Share of the capacity.
func (l Limit) AmountFor(capacity int64) int64 {
	if l.Amount > 0 {
		return l.Amount
	}
	return int64(float64(capacity) * float64(l.Share))
}

// String returns the limit as a quantity such as 100Mi or a percentage such as 5%.
func (l Limit) String() string {
	if l.Amount > 0 {
		return resource.NewQuantity(l.Amount, resource.BinarySI).String()
	}
	return strconv.FormatFloat(float64(l.Share*100), 'g', 6, 32) + "%"
}

// IsCrossed reports whether the available amount of a resource is less than the limit. It returns
// false if the capacity is 0, which means that the capacity is unknown or unlimited.
func (l Limit) IsCrossed(capacity, available int64) bool {
	return capacity > 0 && available < l.AmountFor(capacity)
}

// Hard returns the limit of the hard threshold of a signal; the zero Limit if there is none.
func (p *Policy) Hard(s Signal) Limit {
	for _, t := range p.Thresholds {
		if t.Signal == s && t.IsHard() {
			return t.Limit
		}
	}
	return Limit{}
}
