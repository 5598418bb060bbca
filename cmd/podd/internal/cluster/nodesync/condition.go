package nodesync

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest/order"
	"podd/server"
)

// mergeNodeConditions returns a copy of stored. In the copy, each condition in own is added or
// replaces the condition of the same type. The parameter stored contains the conditions of the
// Node in the API server, and own contains the conditions that podd reports. The transition time of
// a condition changes only if its status changes. The statuses in stored may all be Unknown,
// because the node controller sets the conditions of an unreachable node to Unknown. If own has no
// server.ConfigCondition, this condition is removed, because the node does not use dynamic configuration.
func mergeNodeConditions(stored, own []v1.NodeCondition, now metav1.Time) []v1.NodeCondition {
	merged := slices.Clone(stored)
	for _, c := range own {
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		i := slices.IndexFunc(merged, func(s v1.NodeCondition) bool { return s.Type == c.Type })
		if i < 0 {
			merged = append(merged, c)
			continue
		}
		if merged[i].Status == c.Status {
			c.LastTransitionTime = merged[i].LastTransitionTime
		}
		merged[i] = c
	}
	return slices.DeleteFunc(merged, func(s v1.NodeCondition) bool {
		return s.Type == server.ConfigCondition && !slices.ContainsFunc(own, func(c v1.NodeCondition) bool { return c.Type == s.Type })
	})
}

// normalizeConditions returns a copy of the conditions, sorted by type and without heartbeat times.
func normalizeConditions(conditions []v1.NodeCondition) []v1.NodeCondition {
	conditions = slices.Clone(conditions)
	for i := range conditions {
		conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	order.Stable(conditions, func(a, b v1.NodeCondition) int { return cmp.Compare(a.Type, b.Type) })
	return conditions
}
