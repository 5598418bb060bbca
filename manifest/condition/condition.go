// Package condition finds conditions in the status of a pod. It is a leaf package, because the
// endpoints also use it, and these do not import package manifest. The functions of
// k8s.io/apimachinery find only conditions of the type metav1.Condition.
package condition

import v1 "k8s.io/api/core/v1"

// Find returns the condition of type t, or nil if there is none.
func Find(conditions []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// IsTrue reports whether conditions contains a condition of type t that is true.
func IsTrue(conditions []v1.PodCondition, t v1.PodConditionType) bool {
	c := Find(conditions, t)
	return c != nil && c.Status == v1.ConditionTrue
}
