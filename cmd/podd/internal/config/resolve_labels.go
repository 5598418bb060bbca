package config

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
)

// ownLabels are the labels of Kubernetes domains that a node may set on itself.
var ownLabels = set(
	v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceType, v1.LabelInstanceTypeStable, v1.LabelOSStable, v1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
)

// labels returns the labels of --node-labels.
func (r *resolving) labels() map[string]string {
	return r.pairs("--node-labels", r.flags.NodeLabels, func(key, value string) []string {
		wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if !ownLabel(key) {
			wrong = append(wrong, "is in a domain of Kubernetes' own; want one of kubelet.kubernetes.io or node.kubernetes.io, or of yours")
		}
		return wrong
	})
}

// ownLabel reports whether a node may set a label on itself, as in the kubelet.
func ownLabel(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	within := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	if !strings.Contains(key, "/") || !within("kubernetes.io") && !within("k8s.io") {
		return true
	}
	return ownLabels[key] || within("kubelet.kubernetes.io") || within("node.kubernetes.io")
}

// pairs parses NAME=VALUE flags. wrong returns what is wrong with a pair.
func (r *resolving) pairs(flag string, given []string, wrong func(name, value string) []string) map[string]string {
	var m map[string]string
	for _, text := range given {
		name, value, ok := strings.Cut(strings.TrimSpace(text), "=")
		if !ok {
			r.add(manifest.Error, flag, "%q has no =; want NAME=VALUE", text)
			continue
		}
		for _, why := range wrong(name, value) {
			r.add(manifest.Error, flag, "%q: %s", text, why)
		}
		if m == nil {
			m = map[string]string{}
		}
		m[name] = value
	}
	return m
}
