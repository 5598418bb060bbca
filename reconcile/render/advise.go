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
	// EventOnly reports whether podd reports the advice only as an event. It is set if the user
	// need not change the manifest.
	EventOnly bool
}

// AdviseDNS returns advice about DNS settings of a pod that have no effect. They exceed the limits
// of resolvers, or require a cluster DNS that the node does not have. If the node has no cluster
// DNS, the advice about ClusterFirst is only an event (EventOnly). ClusterFirst is the default of
// Kubernetes, and kubectl run and API servers write this value into all their manifests.
func AdviseDNS(p *manifest.Pod, n Node) []Advice {
	var all []Advice
	spec := &p.Object.Spec
	if _, written := p.Origin.Fields["spec.dnsPolicy"]; written && len(n.ClusterDNS) == 0 {
		switch policy := spec.DNSPolicy; {
		case policy == v1.DNSClusterFirstWithHostNet, policy == v1.DNSClusterFirst && !spec.HostNetwork:
			text := string(policy) + " has the effect of Default on this node, because --cluster-dns is not set"
			all = append(all, Advice{"spec.dnsPolicy", text, policy == v1.DNSClusterFirst})
		}
	}
	full := untruncatedDNS(p, n)
	if slices.Equal(full.Servers, n.DNS.Servers) && slices.Equal(full.Searches, n.DNS.Searches) {
		return all // omit advice about the settings of the node, because AdviseNodeDNS reports it once for all pods
	}
	return append(all, adviseTruncated(full, "spec.dnsConfig.", "together with those of the node and the cluster, ")...)
}

// AdviseNodeDNS returns advice about settings of the node's DNS that have no effect in pods.
func AdviseNodeDNS(d DNS) []Advice { return adviseTruncated(d, "", "") }

func adviseTruncated(d DNS, prefix, with string) []Advice {
	var all []Advice
	if len(d.Servers) > maxNameservers {
		all = append(all, Advice{Field: prefix + "nameservers", Message: fmt.Sprintf("%sthere are %d name servers, but resolvers use only %d; omitted: %s",
			with, len(d.Servers), maxNameservers, strings.Join(d.Servers[maxNameservers:], ", "))})
	}
	if cut := len(d.Searches) - len(limitSearches(d.Searches)); cut > 0 {
		all = append(all, Advice{Field: prefix + "searches", Message: fmt.Sprintf("%sthere are %d search paths, of which %d are omitted; resolvers use at most %d paths, with %d characters in total and %d characters in each path",
			with, len(d.Searches), cut, maxSearches, maxSearchChars, maxSearchPathLength)})
	}
	return all
}

// checkHostname returns an error if a hostname is too long for the kernel. Without this check, the
// runtime would return a less clear error. The conformance tests of a kubelet require the beginning
// of the message.
func checkHostname(name string) error {
	if len(name) <= maxKernelHostnameLength {
		return nil
	}
	return fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s has %d characters (limit %d); shorten spec.hostname or spec.subdomain, or unset setHostnameAsFQDN",
		name, len(name), maxKernelHostnameLength)
}
