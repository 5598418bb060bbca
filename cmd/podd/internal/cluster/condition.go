package cluster

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions are those seen with podd's own as they are now; those of others stay.
// The time of a transition is another only when the status is, and that is
// compared with the cluster's, which says Unknown of a node that was silent.
func conditions(seen, own []v1.NodeCondition, now metav1.Time) []v1.NodeCondition {
	all := slices.Clone(seen)
	for _, c := range own {
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		i := slices.IndexFunc(all, func(s v1.NodeCondition) bool { return s.Type == c.Type })
		if i < 0 {
			all = append(all, c)
			continue
		}
		if all[i].Status == c.Status {
			c.LastTransitionTime = all[i].LastTransitionTime
		}
		all[i] = c
	}
	return all
}

// sorted are conditions by type, without when they were looked at.
func sorted(all []v1.NodeCondition) []v1.NodeCondition {
	all = slices.Clone(all)
	for i := range all {
		all[i].LastHeartbeatTime = metav1.Time{}
	}
	slices.SortStableFunc(all, func(a, b v1.NodeCondition) int { return cmp.Compare(a.Type, b.Type) })
	return all
}
