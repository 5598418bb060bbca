package config

import "time"

// gateCustomQuotaPeriod is the feature gate of cpuCFSQuotaPeriod.
const gateCustomQuotaPeriod = "CustomCPUCFSQuotaPeriod"

// The shortest and the longest period that the kernel accepts.
const minQuotaPeriod, maxQuotaPeriod = time.Millisecond, time.Second

// checkQuotaPeriod checks cpuCFSQuotaPeriod with the rules of the kubelet.
func (c *checker) checkQuotaPeriod() {
	const field = "cpuCFSQuotaPeriod"
	period, def := c.kubelet.CPUCFSQuotaPeriod, newDefaults().CPUCFSQuotaPeriod
	switch {
	case period == nil || *period == *def:
	case !isGateEnabled(c.kubelet, gateCustomQuotaPeriod):
		c.errorf(field, "%s needs the feature gate %s, which is disabled; the default is %s", period.Duration, gateCustomQuotaPeriod, def.Duration)
	case period.Duration < minQuotaPeriod || period.Duration > maxQuotaPeriod:
		c.errorf(field, "%s is out of range; must be between %s and %s", period.Duration, minQuotaPeriod, maxQuotaPeriod)
	}
}

// resolveCPUQuota sets how CPU limits are enforced.
func (r *resolver) resolveCPUQuota(c *Config) {
	d := newDefaults()
	c.DisableCPUQuota = !derefOr(r.kubelet.CPUCFSQuota, d.CPUCFSQuota)
	c.CPUQuotaPeriod = derefOr(r.kubelet.CPUCFSQuotaPeriod, d.CPUCFSQuotaPeriod).Duration
}
