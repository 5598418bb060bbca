package config

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
)

// allowedLabels contains the labels in reserved domains that a node may set on itself.
var allowedLabels = newSet(
	v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceType, v1.LabelInstanceTypeStable, v1.LabelOSStable, v1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
)

// parseLabels returns the labels of --node-labels.
func (r *resolver) parseLabels() map[string]string {
	return r.parseFlagPairs("--node-labels", r.flags.NodeLabels, func(key, value string) []string {
		reasons := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if !maySetLabel(key) {
			reasons = append(reasons, "the domains kubernetes.io and k8s.io are reserved; use kubelet.kubernetes.io, node.kubernetes.io or your own domain")
		}
		return reasons
	})
}

// maySetLabel reports whether a node may set a label on itself, with the rules of the kubelet.
func maySetLabel(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	isBelow := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	if !strings.Contains(key, "/") || !isBelow("kubernetes.io") && !isBelow("k8s.io") {
		return true
	}
	return allowedLabels[key] || isBelow("kubelet.kubernetes.io") || isBelow("node.kubernetes.io")
}

// parseFlagPairs parses the values of a flag, which have the form NAME=VALUE. check returns
// the reasons for which a pair is invalid; parseFlagPairs adds an error for each reason.
func (r *resolver) parseFlagPairs(flag string, values []string, check func(name, value string) []string) map[string]string {
	var m map[string]string
	for _, text := range values {
		name, value, ok := strings.Cut(strings.TrimSpace(text), "=")
		if !ok {
			r.addProblem(manifest.Error, flag, "%q has no =; must have the form NAME=VALUE", text)
			continue
		}
		for _, reason := range check(name, value) {
			r.addProblem(manifest.Error, flag, "%q: %s", text, reason)
		}
		if m == nil {
			m = map[string]string{}
		}
		m[name] = value
	}
	return m
}
