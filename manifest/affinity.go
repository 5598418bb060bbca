package manifest

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MatchesNode reports whether a node matches nodeSelector and the required node affinity of
// a pod. Preferred affinities matter only to a scheduler.
func MatchesNode(spec *v1.PodSpec, name string, labels map[string]string) bool {
	for key, want := range spec.NodeSelector {
		if got, ok := labels[key]; !ok || got != want {
			return false
		}
	}
	required := RequiredAffinity(spec.Affinity)
	return required == nil || SelectsNode(required, name, labels)
}

// SelectsNode reports whether a selector, which must not be nil, selects a node.
func SelectsNode(s *v1.NodeSelector, name string, labels map[string]string) bool {
	return slices.ContainsFunc(s.NodeSelectorTerms, func(t v1.NodeSelectorTerm) bool {
		// A term without requirements matches no node.
		return len(t.MatchExpressions)+len(t.MatchFields) > 0 &&
			matchesAll(t.MatchExpressions, labels) && matchesAll(t.MatchFields, map[string]string{metav1.ObjectNameField: name})
	})
}

// RequiredAffinity returns the required node affinity, or nil if there is none.
func RequiredAffinity(a *v1.Affinity) *v1.NodeSelector {
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func matchesAll(list []v1.NodeSelectorRequirement, values map[string]string) bool {
	return !slices.ContainsFunc(list, func(r v1.NodeSelectorRequirement) bool {
		value, ok := values[r.Key]
		return !matchesRequirement(r, value, ok)
	})
}

func matchesRequirement(r v1.NodeSelectorRequirement, value string, there bool) bool {
	switch r.Operator {
	case v1.NodeSelectorOpIn:
		return there && slices.Contains(r.Values, value)
	case v1.NodeSelectorOpNotIn:
		return !there || !slices.Contains(r.Values, value)
	case v1.NodeSelectorOpExists:
		return there
	case v1.NodeSelectorOpDoesNotExist:
		return !there
	case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
		return there && len(r.Values) == 1 && compareInts(value, r.Values[0], r.Operator == v1.NodeSelectorOpGt)
	}
	return false
}

// compareInts compares integers. It returns false if one of the values is not an integer.
func compareInts(value, limit string, above bool) bool {
	v, err := strconv.ParseInt(value, 10, 64)
	l, err2 := strconv.ParseInt(limit, 10, 64)
	return err == nil && err2 == nil && v != l && (v > l) == above
}
