package config

import "slices"

// together checks fields that depend on each other.
func (c *checking) together() {
	k, d := c.k, defaults()
	if p := k.MaxParallelImagePulls; p != nil && *p > 1 && k.SerializeImagePulls != nil && *k.SerializeImagePulls {
		c.errorf("maxParallelImagePulls", "%d contradicts serializeImagePulls: true; drop one of them", *p)
	}
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
		c.errorf("imageGCHighThresholdPercent", "%d is not above imageGCLowThresholdPercent %d", *high, *low)
	default:
		c.errorf("imageGCLowThresholdPercent", "%d is not below imageGCHighThresholdPercent %d", *low, *high)
	}
	c.shutdown()
	if k.SystemCgroups != "" && k.CgroupRoot == "" {
		c.errorf("systemCgroups", "needs cgroupRoot")
	}
	c.allocatable()
	c.reserved()
	c.pressure()
}

func (c *checking) allocatable() {
	k := c.k
	list := k.EnforceNodeAllocatable
	for i, what := range list {
		at := index("enforceNodeAllocatable", i)
		switch what {
		case "pods":
		case "none":
			if len(list) > 1 {
				c.errorf(at, "none excludes the others")
			}
		case "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible":
			c.errorf(at, "%s: podd limits the cgroup of the pods only; leave it out", what)
		default:
			c.errorf(at, "%q is not known", what)
		}
		if slices.Contains(list[:i], what) {
			c.errorf(at, "%s is there twice", what)
		}
	}
}

// refusals rejects settings that change how processes of pods run, or whether the node
// may run pods, because ignoring them would be wrong.
func (c *checking) refusals() {
	k := c.k
	for _, r := range []struct {
		field, value string
		fine         []string
		why          string
	}{
		{"cpuManagerPolicy", k.CPUManagerPolicy, []string{"", "none"}, "podd pins no CPUs yet; only none is served"},
		{"memoryManagerPolicy", k.MemoryManagerPolicy, []string{"", "None"}, "podd pins no memory yet; only None is served"},
		{"topologyManagerPolicy", k.TopologyManagerPolicy, []string{"", "none"}, "podd aligns nothing to NUMA nodes yet; only none is served"},
		{"reservedSystemCPUs", k.ReservedSystemCPUs, []string{""}, "podd keeps no CPUs free yet; leave it out"},
	} {
		if slices.Contains(r.fine, r.value) || c.named(r.field) {
			continue
		}
		c.errorf(r.field, "%s: %s", r.value, r.why)
	}
	c.swap()
	if k.FailCgroupV1 != nil && *k.FailCgroupV1 && !c.machine.CgroupV2 {
		c.errorf("failCgroupV1", "this machine has cgroup v1; boot it with systemd.unified_cgroup_hierarchy=1 or set false")
	}
}

// swap rejects swap only if the user has requested that: the kubelet fails by default if
// swap is enabled, while pods of podd use none by default. If the kernel cannot limit
// swap, the kubelet silently uses none.
func (c *checking) swap() {
	k := c.k
	const field = "memorySwap.swapBehavior"
	switch {
	case k.MemorySwap.SwapBehavior != LimitedSwap || c.named(field):
	case !c.machine.CgroupV2:
		c.errorf(field, "LimitedSwap: this machine has cgroup v1; boot it with systemd.unified_cgroup_hierarchy=1, or leave it at NoSwap")
	case !c.machine.SwapLimits:
		c.errorf(field, "LimitedSwap: the kernel limits no swap, there is no memory.swap.max; boot it with swapaccount=1, or leave it at NoSwap")
	}
	if k.FailSwapOn != nil && *k.FailSwapOn && c.machine.Swap {
		c.errorf("failSwapOn", "swap is on; turn it off or set false")
	}
}

// LimitedSwap lets Burstable pods use their share of the swap.
const LimitedSwap = "LimitedSwap"

// named reports whether a field has an error already.
func (c *checking) named(field string) bool {
	o := c.m.origin(field)
	for _, p := range c.problems {
		if p.Field == field || o.flag != "" && p.Field == o.flag {
			return true
		}
	}
	return false
}
