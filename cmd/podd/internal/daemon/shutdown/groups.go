package shutdown

import (
	"slices"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/reconcile/plan"
)

// defaultGroups are used if no groups are configured. With these groups, pods get their own grace
// periods, and critical pods stop last.
var defaultGroups = []plan.ShutdownGroup{{Grace: plan.MaxGrace}, {Priority: manifest.CriticalPriority, Grace: plan.MaxGrace}}

// configuredGroups returns the configured groups, or defaultGroups if none are configured.
func configuredGroups(all []config.ShutdownGroup) []plan.ShutdownGroup {
	var groups []plan.ShutdownGroup
	for _, g := range all {
		groups = append(groups, plan.ShutdownGroup{Priority: g.Priority, Grace: g.Grace})
	}
	if len(groups) == 0 {
		return defaultGroups
	}
	return groups
}

// totalGrace returns the sum of the grace periods of the groups, each limited to plan.MaxGrace.
func totalGrace(groups []plan.ShutdownGroup) (all time.Duration) {
	for _, g := range groups {
		all += min(g.Grace, plan.MaxGrace)
	}
	return all
}

// scaleGroups returns a copy of groups with grace periods that add up to total. It divides total in
// proportion to the grace periods in groups. If groups equals defaultGroups, critical pods get a
// third of total.
func scaleGroups(groups []plan.ShutdownGroup, total time.Duration) []plan.ShutdownGroup {
	parts := make([]float64, len(groups))
	for i, g := range groups {
		parts[i] = g.Grace.Seconds()
	}
	if slices.Equal(groups, defaultGroups) {
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
			out[i].Grace = time.Duration(parts[i] / all * float64(total)).Truncate(time.Millisecond)
		}
	}
	return out
}
