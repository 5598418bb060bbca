package metrics

import (
	"sync/atomic"
	"time"
)

// atomicTime is a time that goroutines may replace concurrently. The zero value has
// no time.
type atomicTime struct{ at atomic.Pointer[time.Time] }

// swap stores t and returns the previous time, or zero if there was none.
func (m *atomicTime) swap(t time.Time) time.Time {
	if previous := m.at.Swap(&t); previous != nil {
		return *previous
	}
	return time.Time{}
}
