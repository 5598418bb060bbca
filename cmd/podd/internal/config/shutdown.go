package config

import (
	"cmp"
	"slices"
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// ShutdownGroup contains the pods with at least a priority that are in no higher group.
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
	gracefulShutdown   = "GracefulNodeShutdown"
	shutdownByPriority = "GracefulNodeShutdownBasedOnPodPriority"
)

// shutdownGroups returns the groups in rising order of priority. There are none without a
// grace period, or if the gate is disabled.
func shutdownGroups(k *kubelet.KubeletConfiguration) (all []ShutdownGroup) {
	if off(k, gracefulShutdown) {
		return nil
	}
	for _, p := range k.ShutdownGracePeriodByPodPriority {
		all = append(all, ShutdownGroup{p.Priority, time.Duration(p.ShutdownGracePeriodSeconds) * time.Second})
	}
	slices.SortFunc(all, func(a, b ShutdownGroup) int { return cmp.Compare(a.Priority, b.Priority) })
	if whole, critical := k.ShutdownGracePeriod.Duration, k.ShutdownGracePeriodCriticalPods.Duration; len(all) == 0 && whole > 0 {
		rest := (whole - critical).Truncate(time.Second) // the kubelet counts in seconds
		all = []ShutdownGroup{{0, rest}, {CriticalPriority, (whole - rest).Truncate(time.Second)}}
	}
	return all
}

func off(k *kubelet.KubeletConfiguration, gate string) bool {
	on, set := k.FeatureGates[gate]
	return set && !on
}

// shutdown checks what the kubelet checks, and values without effect.
func (c *checking) shutdown() {
	k := c.k
	const period, critical, groups = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority"
	whole, part := k.ShutdownGracePeriod.Duration, k.ShutdownGracePeriodCriticalPods.Duration
	for _, d := range []struct {
		field string
		value time.Duration
	}{{period, whole}, {critical, part}} {
		if d.value > 0 && d.value < time.Second {
			c.errorf(d.field, "%s is too short; want at least 1s, or 0s for none", d.value)
		}
	}
	if part > whole {
		c.errorf(critical, "%s is longer than shutdownGracePeriod %s", part, whole)
	}
	list := k.ShutdownGracePeriodByPodPriority
	if len(list) > 0 && (whole > 0 || part > 0) {
		c.errorf(groups, "contradicts shutdownGracePeriod; drop one of them")
	}
	if whole > 0 && off(k, gracefulShutdown) {
		c.errorf(period, "needs the feature gate %s, which is off", gracefulShutdown)
	}
	if len(list) > 0 && (off(k, shutdownByPriority) || off(k, gracefulShutdown)) {
		c.errorf(groups, "needs the feature gates %s and %s, of which one is off", gracefulShutdown, shutdownByPriority)
	}
	for i, g := range list {
		if n := g.ShutdownGracePeriodSeconds; n < 0 || n > int64(maxShutdown/time.Second) {
			c.errorf(index(groups, i), "%d seconds are out of range; want 0 to %d", n, int64(maxShutdown/time.Second))
		}
		if slices.ContainsFunc(list[:i], func(o kubelet.ShutdownGracePeriodByPodPriority) bool { return o.Priority == g.Priority }) {
			c.errorf(index(groups, i), "priority %d is there twice", g.Priority)
		}
	}
}

// maxShutdown exceeds any real period, and prevents an overflow of sums.
const maxShutdown = 365 * 24 * time.Hour
