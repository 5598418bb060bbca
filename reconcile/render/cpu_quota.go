package render

import "time"

// CPUQuota configures how the kernel enforces CPU limits. The zero value enforces them with the
// default period.
type CPUQuota struct {
	// IsDisabled reports whether CPU limits are not enforced. In that case, a limit only determines
	// the CPU shares of a container without a CPU request.
	IsDisabled bool
	// Period is the period in which a container may use its quota of CPU time; 0 means 100ms.
	Period time.Duration
}

// The default period and the smallest quota that the kernel accepts, in µs.
const (
	quotaPeriod = 100_000
	minQuota    = 1_000
)

// unlimitedQuota is the quota that removes the CPU limit with which the cgroup of a pod was
// created.
const unlimitedQuota = -1

// periodMicros returns the period in µs.
func (q CPUQuota) periodMicros() int64 {
	if q.Period == 0 {
		return quotaPeriod
	}
	return q.Period.Microseconds()
}

// cpuQuota converts millicores to µs of CPU time per period of the given length in µs; 0 means no
// limit.
func cpuQuota(milli, period int64) int64 {
	if milli == 0 {
		return 0
	}
	return max(min(milli, maxMilliCPU)*period/1000, minQuota)
}
