package pressure

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// The highest rates at which pods are expected to fill a file system. They are those of a fast
// SATA disk and of one processor that creates empty files.
const (
	maxBytesPerSecond  = 512 << 20
	maxInodesPerSecond = 50_000
)

// maxSeconds limits the result of TimeToDiskPressure, because file systems may report any number of
// free bytes.
const maxSeconds = 3600

// TimeToDiskPressure returns the time after which the next threshold of a file system may be met, if
// pods fill the file system at the highest rate. isLimited is false if no such threshold exists, or
// if all of them are already met.
func (p *Policy) TimeToDiskPressure(o Observations) (d time.Duration, isLimited bool) {
	for _, t := range p.effectiveThresholds(o.Layout) {
		observation := o.Signals[t.Signal]
		if t.Signal.Condition() != v1.NodeDiskPressure || observation.Capacity <= 0 || t.isMet(observation, false) {
			continue
		}
		rate := int64(maxBytesPerSecond)
		if t.Signal.Resource() == ResourceInodes {
			rate = maxInodesPerSecond
		}
		remaining := observation.Available - t.Limit.AmountFor(observation.Capacity)
		seconds := min(float64(remaining)/float64(rate), maxSeconds)
		if timeLeft := time.Duration(seconds * float64(time.Second)); !isLimited || timeLeft < d {
			d, isLimited = timeLeft, true
		}
	}
	return d, isLimited
}
