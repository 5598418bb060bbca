package config

import (
	"cmp"
	"slices"
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
	"podd/manifest/order"
)

// A ShutdownGroup is a group of pods that stop together in a node shutdown. A pod belongs to
// the group with the highest Priority that is not greater than the priority of the pod.
type ShutdownGroup struct {
	Priority int32
	// Grace is the maximum grace period of the pods of this group. The next group begins to stop
	// when all pods of this group have stopped, but not later than after Grace.
	Grace time.Duration
}

// The feature gates of a graceful node shutdown.
const (
	gateGracefulShutdown   = "GracefulNodeShutdown"
	gateShutdownByPriority = "GracefulNodeShutdownBasedOnPodPriority"
)

// shutdownGroups returns the groups in ascending order of priority. It returns nil if no grace
// period is set, or if the feature gate GracefulNodeShutdown is disabled.
func shutdownGroups(k *kubelet.KubeletConfiguration) (groups []ShutdownGroup) {
	if !isGateEnabled(k, gateGracefulShutdown) {
		return nil
	}
	for _, p := range k.ShutdownGracePeriodByPodPriority {
		groups = append(groups, ShutdownGroup{p.Priority, time.Duration(p.ShutdownGracePeriodSeconds) * time.Second})
	}
	order.Slice(groups, func(a, b ShutdownGroup) int { return cmp.Compare(a.Priority, b.Priority) })
	if total, critical := k.ShutdownGracePeriod.Duration, k.ShutdownGracePeriodCriticalPods.Duration; len(groups) == 0 && total > 0 {
		regular := (total - critical).Truncate(time.Second) // the kubelet truncates to seconds
		groups = []ShutdownGroup{{0, regular}, {manifest.CriticalPriority, (total - regular).Truncate(time.Second)}}
	}
	return groups
}

// checkShutdown checks the grace periods with the rules of the kubelet. It also rejects settings
// that the kubelet ignores because of another setting.
func (c *checker) checkShutdown() {
	k := c.kubelet
	const periodField, criticalField, groupsField = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority"
	total, critical := k.ShutdownGracePeriod.Duration, k.ShutdownGracePeriodCriticalPods.Duration
	for _, d := range []struct {
		field string
		value time.Duration
	}{{periodField, total}, {criticalField, critical}} {
		if d.value > 0 && d.value < time.Second {
			c.errorf(d.field, "%s is too short; must be at least 1s, or 0s for none", d.value)
		}
	}
	if critical > total {
		c.errorf(criticalField, "%s is longer than shutdownGracePeriod, which is %s", critical, total)
	}
	list := k.ShutdownGracePeriodByPodPriority
	if len(list) > 0 && (total > 0 || critical > 0) {
		c.errorf(groupsField, "conflicts with shutdownGracePeriod; remove one of them")
	}
	if total > 0 && !isGateEnabled(k, gateGracefulShutdown) {
		c.errorf(periodField, "needs the feature gate %s, which is disabled", gateGracefulShutdown)
	}
	if len(list) > 0 && !(isGateEnabled(k, gateShutdownByPriority) && isGateEnabled(k, gateGracefulShutdown)) {
		c.errorf(groupsField, "needs the feature gates %s and %s, one of which is disabled", gateGracefulShutdown, gateShutdownByPriority)
	}
	for i, g := range list {
		if n := g.ShutdownGracePeriodSeconds; n < 0 || n > int64(maxShutdownPeriod/time.Second) {
			c.errorf(joinIndex(groupsField, i), "%d is out of range; must be between 0 and %d seconds", n, int64(maxShutdownPeriod/time.Second))
		}
		if slices.ContainsFunc(list[:i], func(o kubelet.ShutdownGracePeriodByPodPriority) bool { return o.Priority == g.Priority }) {
			c.errorf(joinIndex(groupsField, i), "duplicate priority %d; each must be unique", g.Priority)
		}
	}
}

// maxShutdownPeriod prevents an overflow of the sum of the periods.
const maxShutdownPeriod = 365 * 24 * time.Hour
