// Package condition finds conditions in the status of a pod. It is a leaf package, because the
// endpoints also use it, and these do not import package manifest. The functions of
// k8s.io/apimachinery find only conditions of the type metav1.Condition.
package condition

import v1 "k8s.io/api/core/v1"

// Find returns the condition of type t in all, or nil if there is none.
func Find(all []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := range all {
		if all[i].Type == t {
			return &all[i]
		}
	}
	return nil
}

// IsTrue reports whether all contains a condition of type t that is true.
func IsTrue(all []v1.PodCondition, t v1.PodConditionType) bool {
	c := Find(all, t)
	return c != nil && c.Status == v1.ConditionTrue
}
