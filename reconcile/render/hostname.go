package render

import (
	"strings"

	"podd/manifest"
)

// maxHostnameLength is the maximum length of a hostname that both the kernel and DNS allow.
const maxHostnameLength = 63

// hostname returns the hostname and the domain of a pod, which /etc/hosts of the pod also contains.
// The domain is "" if spec.subdomain is empty or spec.hostnameOverride is set (KEP-4762). Both are
// "" for a host-network pod, because such a pod has the hostname of the node.
func hostname(p *manifest.Pod, n Node) (host, domain string) {
	spec := &p.Object.Spec
	if spec.HostNetwork {
		return "", ""
	}
	host = p.Key.Name
	switch {
	case spec.HostnameOverride != nil:
		host = *spec.HostnameOverride
	case spec.Hostname != "":
		host = spec.Hostname
	}
	if len(host) > maxHostnameLength {
		host = strings.TrimRight(host[:maxHostnameLength], "-.")
	}
	if spec.Subdomain != "" && spec.HostnameOverride == nil {
		domain = spec.Subdomain + "." + p.Key.Namespace + ".svc." + n.ClusterDomain
	}
	return host, domain
}

// kernelHostname returns the kernel's hostname in the pod. With setHostnameAsFQDN it is the fully
// qualified name, which is never truncated, because checkHostname rejects a name that is too long.
func kernelHostname(p *manifest.Pod, n Node) string {
	host, domain := hostname(p, n)
	if fqdn := p.Object.Spec.SetHostnameAsFQDN; domain != "" && fqdn != nil && *fqdn {
		return host + "." + domain
	}
	return host
}
