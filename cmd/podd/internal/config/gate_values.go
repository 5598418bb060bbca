package config

import "strings"

// VisitFeatureGates calls visit with each of the kubelet's feature gates: the name, the kubelet's word for
// the stage, and whether the feature is enabled in podd. set contains the values that the user has set. A
// feature that podd does not have is disabled. A gate that has no effect in podd has the value that the
// kubelet would use.
func VisitFeatureGates(set map[string]bool, visit func(name, stage string, isEnabled bool)) {
	for line := range strings.Lines(featureGates) {
		fields := strings.Fields(line)
		name, stage := fields[0], fields[2]
		if stage == "GA" {
			stage = ""
		}
		visit(name, stage, isFeatureEnabled(name, fields[1] == "true", set))
	}
}

// isFeatureEnabled reports whether the feature of a gate is enabled in podd. byDefault is the kubelet's
// default.
func isFeatureEnabled(name string, byDefault bool, set map[string]bool) bool {
	if isAlwaysEnabled[name] {
		return true
	}
	if group := findGateGroup(name); group != nil && group.lacksFeature {
		return false
	}
	if isOn, isSet := set[name]; isSet {
		return isOn
	}
	if isOn, isSwitchable := switchableGates[name]; isSwitchable {
		return isOn
	}
	return byDefault
}
