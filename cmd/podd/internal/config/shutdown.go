package config

import (
	"cmp"
	"slices"
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// A ShutdownGroup contains the pods with a priority of at least Priority, without those of a
// group with a higher Priority.
type ShutdownGroup struct {
	Priority int32
	// Grace limits the grace periods of its pods in a node shutdown, and the wait before the
	// next group.
	Grace time.Duration
}

// CriticalPriority is the lowest priority of critical pods.
const CriticalPriority = 2_000_000_000

// The feature gates of a graceful shutdown, which are enabled by default.
const (
	gateGracefulShutdown   = "GracefulNodeShutdown"
	gateShutdownByPriority = "GracefulNodeShutdownBasedOnPodPriority"
)

// shutdownGroups returns the groups in rising order of priority. There are none without a
// grace period, or if the gate is disabled.
func shutdownGroups(k *kubelet.KubeletConfiguration) (all []ShutdownGroup) {
	if isDisabled(k, gateGracefulShutdown) {
		return nil
	}
	for _, p := range k.ShutdownGracePeriodByPodPriority {
		all = append(all, ShutdownGroup{p.Priority, time.Duration(p.ShutdownGracePeriodSeconds) * time.Second})
	}
	slices.SortFunc(all, func(a, b ShutdownGroup) int { return cmp.Compare(a.Priority, b.Priority) })
	if total, critical := k.ShutdownGracePeriod.Duration, k.ShutdownGracePeriodCriticalPods.Duration; len(all) == 0 && total > 0 {
		rest := (total - critical).Truncate(time.Second) // the kubelet counts in seconds
		all = []ShutdownGroup{{0, rest}, {CriticalPriority, (total - rest).Truncate(time.Second)}}
	}
	return all
}

// isDisabled reports whether the user has disabled a feature gate.
func isDisabled(k *kubelet.KubeletConfiguration, gate string) bool {
	on, set := k.FeatureGates[gate]
	return set && !on
}

// checkShutdown checks what the kubelet checks, and rejects values without effect.
func (c *checker) checkShutdown() {
	k := c.k
	const periodField, criticalField, groupsField = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority"
	total, critical := k.ShutdownGracePeriod.Duration, k.ShutdownGracePeriodCriticalPods.Duration
	for _, d := range []struct {
		field string
		value time.Duration
	}{{periodField, total}, {criticalField, critical}} {
		if d.value > 0 && d.value < time.Second {
			c.errorf(d.field, "%s is too short; want at least 1s, or 0s for none", d.value)
		}
	}
	if critical > total {
		c.errorf(criticalField, "%s is longer than shutdownGracePeriod, which is %s", critical, total)
	}
	list := k.ShutdownGracePeriodByPodPriority
	if len(list) > 0 && (total > 0 || critical > 0) {
		c.errorf(groupsField, "conflicts with shutdownGracePeriod; remove one of them")
	}
	if total > 0 && isDisabled(k, gateGracefulShutdown) {
		c.errorf(periodField, "needs the feature gate %s, which is disabled", gateGracefulShutdown)
	}
	if len(list) > 0 && (isDisabled(k, gateShutdownByPriority) || isDisabled(k, gateGracefulShutdown)) {
		c.errorf(groupsField, "needs the feature gates %s and %s, one of which is disabled", gateGracefulShutdown, gateShutdownByPriority)
	}
	for i, g := range list {
		if n := g.ShutdownGracePeriodSeconds; n < 0 || n > int64(maxShutdown/time.Second) {
			c.errorf(index(groupsField, i), "%d is out of range; want 0 to %d seconds", n, int64(maxShutdown/time.Second))
		}
		if slices.ContainsFunc(list[:i], func(o kubelet.ShutdownGracePeriodByPodPriority) bool { return o.Priority == g.Priority }) {
			c.errorf(index(groupsField, i), "duplicate priority %d; each must be unique", g.Priority)
		}
	}
}

// maxShutdown prevents an overflow of the sum of the periods.
const maxShutdown = 365 * 24 * time.Hour
