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
func configuredGroups(configured []config.ShutdownGroup) []plan.ShutdownGroup {
	var groups []plan.ShutdownGroup
	for _, g := range configured {
		groups = append(groups, plan.ShutdownGroup{Priority: g.Priority, Grace: g.Grace})
	}
	if len(groups) == 0 {
		return defaultGroups
	}
	return groups
}

// totalGrace returns the sum of the grace periods of the groups, each limited to plan.MaxGrace.
func totalGrace(groups []plan.ShutdownGroup) (total time.Duration) {
	for _, g := range groups {
		total += min(g.Grace, plan.MaxGrace)
	}
	return total
}

// scaleGroups returns a copy of groups with grace periods that add up to total. It divides total in
// proportion to the grace periods in groups. If groups equals defaultGroups, critical pods get a
// third of total.
func scaleGroups(groups []plan.ShutdownGroup, total time.Duration) []plan.ShutdownGroup {
	shares := make([]float64, len(groups))
	for i, g := range groups {
		shares[i] = g.Grace.Seconds()
	}
	if slices.Equal(groups, defaultGroups) {
		shares = []float64{2, 1}
	}
	sum := 0.
	for _, p := range shares {
		sum += p
	}
	out := slices.Clone(groups)
	for i := range out {
		out[i].Grace = 0
		if sum > 0 {
			out[i].Grace = time.Duration(shares[i] / sum * float64(total)).Truncate(time.Millisecond)
		}
	}
	return out
}
