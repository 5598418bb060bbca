package manifest

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// fieldNodeName is the one field of a node that an affinity can ask for.
const fieldNodeName = "metadata.name"

// MatchesNode says that a node is one that nodeSelector and the required node
// affinity of a pod ask for. What is only preferred is a scheduler's business.
func MatchesNode(spec *v1.PodSpec, name string, labels map[string]string) bool {
	for key, want := range spec.NodeSelector {
		if got, ok := labels[key]; !ok || got != want {
			return false
		}
	}
	required := requiredAffinity(spec.Affinity)
	return required == nil || selectsNode(required, name, labels)
}

func selectsNode(s *v1.NodeSelector, name string, labels map[string]string) bool {
	return slices.ContainsFunc(s.NodeSelectorTerms, func(t v1.NodeSelectorTerm) bool {
		// A term that asks for nothing means no node.
		return len(t.MatchExpressions)+len(t.MatchFields) > 0 &&
			allMet(t.MatchExpressions, labels) && allMet(t.MatchFields, map[string]string{fieldNodeName: name})
	})
}

func requiredAffinity(a *v1.Affinity) *v1.NodeSelector {
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func allMet(list []v1.NodeSelectorRequirement, values map[string]string) bool {
	return !slices.ContainsFunc(list, func(r v1.NodeSelectorRequirement) bool {
		value, ok := values[r.Key]
		return !met(r, value, ok)
	})
}

func met(r v1.NodeSelectorRequirement, value string, there bool) bool {
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
		return there && len(r.Values) == 1 && beyond(value, r.Values[0], r.Operator == v1.NodeSelectorOpGt)
	}
	return false
}

// beyond compares whole numbers; what is none is on neither side.
func beyond(value, limit string, above bool) bool {
	v, err := strconv.ParseInt(value, 10, 64)
	l, err2 := strconv.ParseInt(limit, 10, 64)
	return err == nil && err2 == nil && v != l && (v > l) == above
}
