package render

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// maxKernelHostname is what sethostname(2) takes.
const maxKernelHostname = 64

// Advice is of a field that is valid and has not all of its effect on this node.
type Advice struct {
	Field, Message string
	// Passing says that there is nothing to mend: it is worth an event, no more.
	Passing bool
}

// AdviseDNS tells what a pod's resolvers are not told: what is cut to their
// limits, and the DNS of a cluster that the node does not know. ClusterFirst is
// Kubernetes' default and in every manifest that kubectl run or a cluster wrote, so
// that alone asks for nothing special.
func AdviseDNS(p *manifest.Pod, n Node) []Advice {
	var all []Advice
	spec := &p.Spec.Spec
	if _, written := p.Origin.Fields["spec.dnsPolicy"]; written && len(n.ClusterDNS) == 0 {
		switch policy := spec.DNSPolicy; {
		case policy == v1.DNSClusterFirstWithHostNet, policy == v1.DNSClusterFirst && !spec.HostNetwork:
			text := string(policy) + " is as Default here; this podd was told of no cluster's DNS (--cluster-dns)"
			all = append(all, Advice{"spec.dnsPolicy", text, policy == v1.DNSClusterFirst})
		}
	}
	full := fullDNS(p, n)
	if slices.Equal(full.Servers, n.DNS.Servers) && slices.Equal(full.Searches, n.DNS.Searches) {
		return all // what is cut of the node's own is said once
	}
	return append(all, adviseCut(full, "spec.dnsConfig.", "with the node's and the cluster's ")...)
}

// AdviseNode likewise of the node's own DNS, which pods have.
func AdviseNode(d DNS) []Advice { return adviseCut(d, "", "") }

func adviseCut(d DNS, prefix, with string) []Advice {
	var all []Advice
	if len(d.Servers) > maxNameservers {
		all = append(all, Advice{Field: prefix + "nameservers", Message: fmt.Sprintf("%sthere are %d, of which resolvers ask %d; left out: %s",
			with, len(d.Servers), maxNameservers, strings.Join(d.Servers[maxNameservers:], ", "))})
	}
	if cut := len(d.Searches) - len(fitSearches(d.Searches)); cut > 0 {
		all = append(all, Advice{Field: prefix + "searches", Message: fmt.Sprintf("%sthere are %d, of which %d are left out; resolvers take %d of %d characters together and %d each",
			with, len(d.Searches), cut, maxSearches, maxSearchChars, maxSearchPath)})
	}
	return all
}

// checkHostname: the kernel would refuse the sandbox, and the runtime would say
// that in words of its own.
func checkHostname(name string) error {
	if len(name) <= maxKernelHostname {
		return nil
	}
	return fmt.Errorf("setting the pod's hostname: %s has %d letters and a hostname %d at most; shorten spec.hostname or spec.subdomain, or unset setHostnameAsFQDN",
		name, len(name), maxKernelHostname)
}
