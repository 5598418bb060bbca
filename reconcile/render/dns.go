package render

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// podDNS is the resolver configuration of a pod, cut to what resolvers take;
// AdviseDNS tells what that leaves out.
func podDNS(p *manifest.Pod, n Node) *cri.DNSConfig {
	d := fullDNS(p, n)
	return &cri.DNSConfig{
		Servers:  d.Servers[:min(len(d.Servers), maxNameservers)],
		Searches: fitSearches(d.Searches),
		Options:  d.Options,
	}
}

// fullDNS is by dnsPolicy, with dnsConfig merged in.
func fullDNS(p *manifest.Pod, n Node) DNS {
	spec := &p.Spec.Spec
	d := policyDNS(spec, p.Key.Namespace, n)
	if c := spec.DNSConfig; c != nil {
		d.Servers = unique(d.Servers, c.Nameservers)
		d.Searches = unique(d.Searches, c.Searches)
		for _, o := range c.Options {
			d.Options = setOption(d.Options, optionText(o))
		}
	}
	return d
}

// policyDNS is the configuration that dnsPolicy alone gives, in slices of its
// own. ClusterFirst on the host's network means the node's, and so does
// ClusterFirst on a node that knows no cluster DNS.
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
	return unique([]string{namespace + ".svc." + d, "svc." + d, d}, n.DNS.Searches)
}

// optionText is a dnsConfig option as resolv.conf has it.
func optionText(o v1.PodDNSConfigOption) string {
	if o.Value == nil || *o.Value == "" {
		return o.Name
	}
	return o.Name + ":" + *o.Value
}

// unique joins the lists in a new one and keeps the first of equal entries.
func unique(lists ...[]string) []string {
	var all []string
	for _, list := range lists {
		for _, s := range list {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// fitSearches keeps the leading search paths that fit the limits.
func fitSearches(searches []string) []string {
	searches = searches[:min(len(searches), maxSearches)]
	var fit []string
	chars := -1 // one space fewer than paths
	for _, s := range searches {
		if len(s) > maxSearchPath {
			continue
		}
		if chars += 1 + len(s); chars > maxSearchChars {
			break
		}
		fit = append(fit, s)
	}
	return fit
}
