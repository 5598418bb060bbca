package render

import (
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// TestQuota checks the CPU quota that results from CPU limits.
func TestQuota(t *testing.T) {
	for _, tt := range []struct{ milli, period, want int64 }{
		{0, quotaPeriod, 0}, {1, quotaPeriod, 1000}, {10, quotaPeriod, 1000}, {11, quotaPeriod, 1100}, {100, quotaPeriod, 10000}, {1500, quotaPeriod, 150000},
		{1500, 5000, 7500}, {100, 5000, 1000}, {1000, 1_000_000, 1_000_000},
	} {
		if got := cpuQuota(tt.milli, tt.period); got != tt.want {
			t.Errorf("quota(%d, %d): got %d, want %d", tt.milli, tt.period, got, tt.want)
		}
	}
	if got := cpuQuota(math.MaxInt64, 1_000_000); got < minQuota {
		t.Errorf("quota of a limit that exceeds any node: got %d, want no overflow", got)
	}
}

// TestCPUQuota checks the quotas and periods of a container, its sandbox and the cgroup of its pod.
func TestCPUQuota(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: amounts("100m", "500m", "", "")}}}}
	for name, tt := range map[string]struct {
		config                              CPUQuota
		wantPeriod, wantQuota, wantPodQuota int64
	}{
		"default":       {CPUQuota{}, 100_000, 50_000, 50_000},
		"short period":  {CPUQuota{Period: 10 * time.Millisecond}, 10_000, 5_000, 5_000},
		"without quota": {CPUQuota{IsDisabled: true, Period: 100 * time.Millisecond}, 0, 0, unlimitedQuota},
	} {
		n := Node{CPUQuota: tt.config}
		if r := ContainerResources(n, pod, &pod.Spec.Containers[0]); r.CpuPeriod != tt.wantPeriod || r.CpuQuota != tt.wantQuota || r.CpuShares != 102 {
			t.Errorf("%s: container: got quota %d per %d µs and %d shares, want quota %d per %d µs and 102 shares", name, r.CpuQuota, r.CpuPeriod, r.CpuShares, tt.wantQuota, tt.wantPeriod)
		}
		if r := sandboxResources(n, pod); r.CpuPeriod != tt.wantPeriod || r.CpuQuota != tt.wantQuota {
			t.Errorf("%s: sandbox: got quota %d per %d µs, want %d per %d µs", name, r.CpuQuota, r.CpuPeriod, tt.wantQuota, tt.wantPeriod)
		}
		if c := PodCgroup(&manifest.Pod{UID: "u", Object: pod}, n); c.CPUQuota != tt.wantPodQuota {
			t.Errorf("%s: pod: got quota %d, want %d", name, c.CPUQuota, tt.wantPodQuota)
		}
		if c := PodCgroup(&manifest.Pod{UID: "u", Object: pod}, n); c.WithLimitsAtLeast(c).CPUQuota != tt.wantPodQuota {
			t.Errorf("%s: pod that is resized: got quota %d, want %d", name, c.WithLimitsAtLeast(c).CPUQuota, tt.wantPodQuota)
		}
	}
}
