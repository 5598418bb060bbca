package config

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
)

// allowedLabels are labels of Kubernetes domains that a node may set on itself.
var allowedLabels = set(
	v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceType, v1.LabelInstanceTypeStable, v1.LabelOSStable, v1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
)

// labels returns the labels of --node-labels.
func (r *resolver) labels() map[string]string {
	return r.parsePairs("--node-labels", r.flags.NodeLabels, func(key, value string) []string {
		reasons := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if !maySetLabel(key) {
			reasons = append(reasons, "the domains kubernetes.io and k8s.io are reserved; want kubelet.kubernetes.io, node.kubernetes.io or your own domain")
		}
		return reasons
	})
}

// maySetLabel reports whether a node may set a label on itself. The rules are the kubelet's.
func maySetLabel(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	isBelow := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	if !strings.Contains(key, "/") || !isBelow("kubernetes.io") && !isBelow("k8s.io") {
		return true
	}
	return allowedLabels[key] || isBelow("kubelet.kubernetes.io") || isBelow("node.kubernetes.io")
}

// parsePairs parses the values of a flag of the form NAME=VALUE. check returns the reasons
// for which a pair is invalid.
func (r *resolver) parsePairs(flag string, values []string, check func(name, value string) []string) map[string]string {
	var m map[string]string
	for _, text := range values {
		name, value, ok := strings.Cut(strings.TrimSpace(text), "=")
		if !ok {
			r.add(manifest.Error, flag, "%q has no =; want NAME=VALUE", text)
			continue
		}
		for _, why := range check(name, value) {
			r.add(manifest.Error, flag, "%q: %s", text, why)
		}
		if m == nil {
			m = map[string]string{}
		}
		m[name] = value
	}
	return m
}
