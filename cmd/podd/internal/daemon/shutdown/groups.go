package shutdown

import (
	"slices"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/plan"
)

// unboundedGroups are the groups if none are configured. Pods get their own grace periods,
// and critical pods stop last.
var unboundedGroups = []plan.ShutdownGroup{{Grace: plan.MaxGrace}, {Priority: config.CriticalPriority, Grace: plan.MaxGrace}}

// configuredGroups returns the configured groups, or unboundedGroups if there are none.
func configuredGroups(all []config.ShutdownGroup) []plan.ShutdownGroup {
	var groups []plan.ShutdownGroup
	for _, g := range all {
		groups = append(groups, plan.ShutdownGroup{Priority: g.Priority, Grace: g.Grace})
	}
	if len(groups) == 0 {
		return unboundedGroups
	}
	return groups
}

// totalGrace returns the longest time that the groups may take.
func totalGrace(groups []plan.ShutdownGroup) (all time.Duration) {
	for _, g := range groups {
		all += min(g.Grace, plan.MaxGrace)
	}
	return all
}

// scaleGroups divides the duration whole among groups in proportion to their grace periods.
// If groups are the unboundedGroups, the critical pods get a third.
func scaleGroups(groups []plan.ShutdownGroup, whole time.Duration) []plan.ShutdownGroup {
	parts := make([]float64, len(groups))
	for i, g := range groups {
		parts[i] = g.Grace.Seconds()
	}
	if slices.Equal(groups, unboundedGroups) {
		parts = []float64{2, 1}
	}
	all := 0.
	for _, p := range parts {
		all += p
	}
	out := slices.Clone(groups)
	for i := range out {
		out[i].Grace = 0
		if all > 0 {
			out[i].Grace = time.Duration(parts[i] / all * float64(whole)).Truncate(time.Millisecond)
		}
	}
	return out
}
