package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"podd/manifest"
)

// hiddenMetricsVersion returns the only valid value of showHiddenMetricsForVersion: the previous release
// of Kubernetes. The kubelet rejects all other values.
func hiddenMetricsVersion() string {
	major, minor, _ := strings.Cut(manifest.KubernetesRelease(), ".")
	n, _ := strconv.Atoi(minor) // manifest.KubernetesRelease always returns two numbers
	return fmt.Sprintf("%s.%d", major, n-1)
}

// checkCombined checks fields that depend on other fields.
func (c *checker) checkCombined() {
	k := c.kubelet
	if p := k.MaxParallelImagePulls; p != nil && *p > 1 && k.SerializeImagePulls != nil && *k.SerializeImagePulls {
		c.errorf("maxParallelImagePulls", "%d conflicts with serializeImagePulls: true; remove one of them", *p)
	}
	if q, h := k.EnableSystemLogQuery, k.EnableSystemLogHandler; q != nil && *q && h != nil && !*h {
		c.errorf("enableSystemLogQuery", "conflicts with enableSystemLogHandler: false; remove one of them")
	}
	c.checkImageGC()
	c.checkCredentialVerification()
	c.checkShutdown()
	c.checkMemoryQoS()
	c.checkQuotaPeriod()
	if k.SystemCgroups != "" && k.CgroupRoot == "" {
		c.errorf("systemCgroups", "needs cgroupRoot")
	}
	c.checkEnforceAllocatable()
	c.checkPodCgroups()
	c.checkUserNamespaces()
	c.checkReserved()
	c.checkEviction()
}

// checkImageGC checks the thresholds and ages of image garbage collection.
func (c *checker) checkImageGC() {
	k, d := c.kubelet, newDefaults()
	low, high := k.ImageGCLowThresholdPercent, k.ImageGCHighThresholdPercent
	if low == nil {
		low = d.ImageGCLowThresholdPercent
	}
	if high == nil {
		high = d.ImageGCHighThresholdPercent
	}
	switch {
	case *low < *high:
	case k.ImageGCLowThresholdPercent == nil:
		c.errorf("imageGCHighThresholdPercent", "%d must be greater than imageGCLowThresholdPercent, which is %d", *high, *low)
	default:
		c.errorf("imageGCLowThresholdPercent", "%d must be less than imageGCHighThresholdPercent, which is %d", *low, *high)
	}
	minAge, maxAge := valueOr(c.merged, "imageMinimumGCAge", k.ImageMinimumGCAge, d.ImageMinimumGCAge).Duration, k.ImageMaximumGCAge.Duration
	if maxAge > 0 && maxAge <= minAge {
		c.errorf("imageMaximumGCAge", "%s must be greater than imageMinimumGCAge, which is %s", maxAge, minAge)
	}
}

// checkUnsupported rejects settings that podd does not support.
func (c *checker) checkUnsupported() {
	k := c.kubelet
	for _, r := range []struct {
		field, value string
		allowed      []string
		reason       string
	}{
		{"cpuManagerPolicy", k.CPUManagerPolicy, []string{"", "none"}, "podd does not pin CPUs; use the policy none"},
		{"memoryManagerPolicy", k.MemoryManagerPolicy, []string{"", "None"}, "podd does not pin memory; use the policy None"},
		{"topologyManagerPolicy", k.TopologyManagerPolicy, []string{"", "none"}, "podd does not align resources to NUMA nodes; use the policy none"},
	} {
		if slices.Contains(r.allowed, r.value) || c.hasProblem(r.field) {
			continue
		}
		c.errorf(r.field, "%s: %s", r.value, r.reason)
	}
	v := reflect.ValueOf(k).Elem()
	visitFields(v, v, "", func(path string, v, _ reflect.Value) {
		if reason := rejectedFields[path]; reason != "" && !isZero(v) {
			c.errorf(path, "%s", reason)
		}
	})
	if k.LocalStorageCapacityIsolation != nil && !*k.LocalStorageCapacityIsolation {
		c.errorf("localStorageCapacityIsolation", "false: podd always enforces the limits of ephemeral-storage; remove this field, and the limits from pods that need none")
	}
	if k.VolumeStatsAggPeriod.Duration < 0 {
		c.errorf("volumeStatsAggPeriod", "%s: podd cannot disable the statistics of volumes; remove this field", k.VolumeStatsAggPeriod.Duration)
	}
	if v := k.ShowHiddenMetricsForVersion; v != "" && v != hiddenMetricsVersion() {
		c.errorf("showHiddenMetricsForVersion", "unknown value %q; must be %s, the previous version of Kubernetes", v, hiddenMetricsVersion())
	}
	c.checkSwap()
	if k.SingleProcessOOMKill != nil && !*k.SingleProcessOOMKill && !c.host.UsesCgroupV2 {
		c.errorf("singleProcessOOMKill", "false: this host uses cgroup v1; boot the host with systemd.unified_cgroup_hierarchy=1, or remove this field")
	}
	if k.FailCgroupV1 != nil && *k.FailCgroupV1 && !c.host.UsesCgroupV2 {
		c.errorf("failCgroupV1", "this host uses cgroup v1; boot the host with systemd.unified_cgroup_hierarchy=1, or set this field to false")
	}
}

// checkSwap rejects the swap behavior LimitedSwap if the kernel cannot limit swap. A kubelet on such
// a host reports no error, but its pods use no swap.
//
// If swap is enabled on the host, checkSwap rejects "failSwapOn: true". The default of failSwapOn
// is true in the kubelet, and false in podd, because pods use no swap by default.
func (c *checker) checkSwap() {
	k := c.kubelet
	const field = "memorySwap.swapBehavior"
	switch {
	case k.MemorySwap.SwapBehavior != limitedSwap || c.hasProblem(field):
	case !c.host.UsesCgroupV2:
		c.errorf(field, "LimitedSwap: this host uses cgroup v1; boot the host with systemd.unified_cgroup_hierarchy=1, or use NoSwap")
	case !c.host.CanLimitSwap:
		c.errorf(field, "LimitedSwap: the kernel cannot limit swap, because memory.swap.max does not exist; boot the host with swapaccount=1, or use NoSwap")
	}
	if k.FailSwapOn != nil && *k.FailSwapOn && c.host.SwapEnabled {
		c.errorf("failSwapOn", "swap is enabled on this host; disable swap, or set this field to false")
	}
}

// limitedSwap is the value of memorySwap.swapBehavior with which Burstable pods use swap in
// proportion to their memory requests.
const limitedSwap = "LimitedSwap"

// hasProblem reports whether c has a problem of a field or of the flag that sets this field.
func (c *checker) hasProblem(field string) bool {
	o := c.merged.origin(field)
	for _, p := range c.problems {
		if p.FieldPath == field || o.flag != "" && p.FieldPath == o.flag {
			return true
		}
	}
	return false
}
