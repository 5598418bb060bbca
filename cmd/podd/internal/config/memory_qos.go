package config

import (
	"k8s.io/apimachinery/pkg/util/version"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// gateMemoryQoS is the feature gate of memoryThrottlingFactor and memoryReservationPolicy.
const gateMemoryQoS = "MemoryQoS"

// ignoredThrottlingFactor is the value of memoryThrottlingFactor that the kubelet ignores without the
// feature gate MemoryQoS, because it was the default in earlier versions.
const ignoredThrottlingFactor = 0.9

// throttlingKernel is the first version of the kernel in which a process cannot reclaim memory in an endless
// loop when its cgroup exceeds memory.high (commit b3ff92916af3). The kubelet warns about older kernels.
const throttlingKernel = "5.9"

// isKernelOlder reports whether the release of a kernel is older than a version. It returns false if the
// release is unknown.
func isKernelOlder(release, than string) bool {
	kernel, err := version.ParseGeneric(release)
	return err == nil && kernel.LessThan(version.MustParseGeneric(than))
}

// checkMemoryQoS checks memoryThrottlingFactor and memoryReservationPolicy with the rules of the kubelet,
// and warns if they have no effect on this host.
func (c *checker) checkMemoryQoS() {
	k := c.kubelet
	const factorField, policyField = "memoryThrottlingFactor", "memoryReservationPolicy"
	isTiered := k.MemoryReservationPolicy == kubelet.TieredReservationMemoryReservationPolicy
	factor := k.MemoryThrottlingFactor
	if factor != nil && !(*factor > 0 && *factor <= 1) {
		c.errorf(factorField, "%v is out of range; must be more than 0 and at most 1", *factor)
	}
	if !isGateEnabled(k, gateMemoryQoS) {
		if !c.hasProblem(factorField) && factor != nil && *factor != ignoredThrottlingFactor {
			c.errorf(factorField, "needs the feature gate %s, which is disabled", gateMemoryQoS)
		}
		if isTiered {
			c.errorf(policyField, "TieredReservation needs the feature gate %s, which is disabled", gateMemoryQoS)
		}
		return
	}
	if isTiered && k.RunOnce {
		c.warn(policyField, "TieredReservation: ignored with --runonce, because the kernel protects memory only if the cgroups above it are protected, and a run does not set the cgroups of QoS classes")
	}
	if c.host.UsesCgroupV2 {
		if factor != nil && isKernelOlder(c.host.KernelRelease, throttlingKernel) {
			c.warn(factorField, "processes can hang while they are throttled, because of a bug in the kernel before "+throttlingKernel+"; this host runs "+c.host.KernelRelease)
		}
		return
	}
	const noEffect = "no effect, because this host uses cgroup v1; boot the host with systemd.unified_cgroup_hierarchy=1"
	if factor != nil {
		c.warn(factorField, noEffect)
	}
	if isTiered && !k.RunOnce {
		c.warn(policyField, "TieredReservation has "+noEffect)
	}
}

// warn adds a warning that concerns a field.
func (c *checker) warn(field, text string) {
	c.problems = append(c.problems, c.merged.origin(field).problem(manifest.Warning, field, text))
}

// resolveMemoryQoS sets the configuration of the protection and throttling of memory.
func (r *resolver) resolveMemoryQoS(c *Config) {
	if !isGateEnabled(r.kubelet, gateMemoryQoS) {
		return
	}
	c.ReserveMemoryRequests = r.kubelet.MemoryReservationPolicy == kubelet.TieredReservationMemoryReservationPolicy && !r.kubelet.RunOnce
	if factor := r.kubelet.MemoryThrottlingFactor; factor != nil {
		c.MemoryThrottlingFactor = *factor
	}
}
