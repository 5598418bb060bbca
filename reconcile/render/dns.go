package render

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// podDNS returns the resolver configuration of a pod, truncated to the limits of resolvers.
// AdviseDNS reports the settings that are omitted.
func podDNS(p *manifest.Pod, n Node) *cri.DNSConfig {
	d := untruncatedDNS(p, n)
	return &cri.DNSConfig{
		Servers:  d.Servers[:min(len(d.Servers), maxNameservers)],
		Searches: limitSearches(d.Searches),
		Options:  d.Options,
	}
}

// untruncatedDNS returns the resolver configuration that results from dnsPolicy and dnsConfig,
// without applying the limits of resolvers.
func untruncatedDNS(p *manifest.Pod, n Node) DNS {
	spec := &p.Object.Spec
	d := policyDNS(spec, p.Key.Namespace, n)
	if c := spec.DNSConfig; c != nil {
		d.Servers = concatUnique(d.Servers, c.Nameservers)
		d.Searches = concatUnique(d.Searches, c.Searches)
		for _, o := range c.Options {
			d.Options = setOption(d.Options, optionText(o))
		}
	}
	return d
}

// policyDNS returns a copy of the configuration that dnsPolicy selects. For a host-network pod, and
// on a node without cluster DNS, ClusterFirst selects the configuration of the node.
func policyDNS(spec *v1.PodSpec, namespace string, n Node) DNS {
	policy := spec.DNSPolicy
	if policy == v1.DNSNone {
		return DNS{}
	}
	cluster := policy == v1.DNSClusterFirstWithHostNet ||
		policy != v1.DNSDefault && !spec.HostNetwork
	if cluster && len(n.ClusterDNS) > 0 {
		return DNS{
			Servers:  slices.Clone(n.ClusterDNS),
			Searches: clusterSearches(namespace, n),
			Options:  []string{"ndots:5"},
		}
	}
	return DNS{
		Servers:  slices.Clone(n.DNS.Servers),
		Searches: slices.Clone(n.DNS.Searches),
		Options:  slices.Clone(n.DNS.Options),
	}
}

func clusterSearches(namespace string, n Node) []string {
	d := n.ClusterDomain
	if d == "" {
		return slices.Clone(n.DNS.Searches)
	}
	return concatUnique([]string{namespace + ".svc." + d, "svc." + d, d}, n.DNS.Searches)
}

// optionText returns a dnsConfig option in the format of resolv.conf.
func optionText(o v1.PodDNSConfigOption) string {
	if o.Value == nil || *o.Value == "" {
		return o.Name
	}
	return o.Name + ":" + *o.Value
}

// concatUnique returns the concatenation of the lists. It omits elements that occurred before.
func concatUnique(lists ...[]string) []string {
	var result []string
	for _, list := range lists {
		for _, s := range list {
			if !slices.Contains(result, s) {
				result = append(result, s)
			}
		}
	}
	return result
}

// limitSearches returns the first search paths that are within the limits.
func limitSearches(searches []string) []string {
	searches = searches[:min(len(searches), maxSearches)]
	var fit []string
	chars := -1 // starts at -1, because there is one space fewer than paths
	for _, s := range searches {
		if len(s) > maxSearchPathLength {
			continue
		}
		if chars += 1 + len(s); chars > maxSearchChars {
			break
		}
		fit = append(fit, s)
	}
	return fit
}
