package metrics

import (
	"sync/atomic"
	"time"
)

// moment is a time that any goroutine may replace. Its zero value has none.
type moment struct{ at atomic.Pointer[time.Time] }

// swap stores a time and returns the one before, zero for none.
func (m *moment) swap(t time.Time) time.Time {
	if before := m.at.Swap(&t); before != nil {
		return *before
	}
	return time.Time{}
}
