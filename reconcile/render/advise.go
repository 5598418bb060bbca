package render

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// maxKernelHostnameLength is the limit of sethostname(2).
const maxKernelHostnameLength = 64

// An Advice describes a valid field that has no effect, or only a part of its effect, on this node.
type Advice struct {
	Field, Message string
	// EventOnly reports whether podd reports the advice only as an event, because the user need not
	// change the manifest.
	EventOnly bool
}

// AdviseDNS returns advice about DNS settings of a pod that have no effect, because they exceed the
// limits of resolvers, or require a cluster DNS that the node does not have. If the node has no
// cluster DNS, the advice about ClusterFirst is only an event (EventOnly). The reason is that
// ClusterFirst is the default of Kubernetes, which kubectl run and API servers write into all their
// manifests.
func AdviseDNS(p *manifest.Pod, n Node) []Advice {
	var advice []Advice
	spec := &p.Object.Spec
	if _, isSet := p.Origin.Fields["spec.dnsPolicy"]; isSet && len(n.ClusterDNS) == 0 {
		switch policy := spec.DNSPolicy; {
		case policy == v1.DNSClusterFirstWithHostNet, policy == v1.DNSClusterFirst && !spec.HostNetwork:
			text := string(policy) + " has the effect of Default on this node, because --cluster-dns is not set"
			advice = append(advice, Advice{"spec.dnsPolicy", text, policy == v1.DNSClusterFirst})
		}
	}
	config := untruncatedDNS(p, n)
	if slices.Equal(config.Servers, n.DNS.Servers) && slices.Equal(config.Searches, n.DNS.Searches) {
		return advice // omit advice about the settings of the node, because AdviseNodeDNS reports it once for all pods
	}
	return append(advice, adviseTruncated(config, "spec.dnsConfig.", "together with those of the node and the cluster, ")...)
}

// AdviseNodeDNS returns advice about settings of the node's DNS that have no effect in pods.
func AdviseNodeDNS(d DNS) []Advice { return adviseTruncated(d, "", "") }

func adviseTruncated(d DNS, prefix, origin string) []Advice {
	var advice []Advice
	if len(d.Servers) > maxNameservers {
		advice = append(advice, Advice{Field: prefix + "nameservers", Message: fmt.Sprintf("%sthere are %d name servers, but resolvers use only %d; omitted: %s",
			origin, len(d.Servers), maxNameservers, strings.Join(d.Servers[maxNameservers:], ", "))})
	}
	if omitted := len(d.Searches) - len(limitSearches(d.Searches)); omitted > 0 {
		advice = append(advice, Advice{Field: prefix + "searches", Message: fmt.Sprintf("%sthere are %d search paths, of which %d are omitted; resolvers use at most %d paths, with %d characters in total and %d characters in each path",
			origin, len(d.Searches), omitted, maxSearches, maxSearchChars, maxSearchPathLength)})
	}
	return advice
}

// checkHostname returns an error if a hostname is too long for the kernel. Without this check, the
// runtime would return a less clear error. The message begins like the kubelet's, as its
// conformance tests require.
func checkHostname(name string) error {
	if len(name) <= maxKernelHostnameLength {
		return nil
	}
	return fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s has %d characters (limit %d); shorten spec.hostname or spec.subdomain, or unset setHostnameAsFQDN",
		name, len(name), maxKernelHostnameLength)
}
