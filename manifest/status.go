package manifest

import v1 "k8s.io/api/core/v1"

// FindCondition returns the condition of type t in all, or nil if there is none.
func FindCondition(all []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := range all {
		if all[i].Type == t {
			return &all[i]
		}
	}
	return nil
}

// IsConditionTrue reports whether all contains a condition of type t that is true.
func IsConditionTrue(all []v1.PodCondition, t v1.PodConditionType) bool {
	c := FindCondition(all, t)
	return c != nil && c.Status == v1.ConditionTrue
}

// IsTerminal reports whether a pod in phase p never runs again.
func IsTerminal(p v1.PodPhase) bool { return p == v1.PodSucceeded || p == v1.PodFailed }
