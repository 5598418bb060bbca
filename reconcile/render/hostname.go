package render

import (
	"strings"

	"podd/manifest"
)

// maxHostname is the longest host name the kernel and DNS both take.
const maxHostname = 63

// Hostname is a pod's short host name and the domain it lives in; the domain is
// "" without spec.subdomain. Both are for /etc/hosts too. A host-network pod
// has the node's name and nothing here.
func Hostname(p *manifest.Pod, n Node) (host, domain string) {
	spec := &p.Spec.Spec
	if spec.HostNetwork {
		return "", ""
	}
	host = p.Key.Name
	if spec.Hostname != "" {
		host = spec.Hostname
	}
	if len(host) > maxHostname {
		host = strings.TrimRight(host[:maxHostname], "-.")
	}
	if spec.Subdomain != "" {
		domain = spec.Subdomain + "." + p.Key.Namespace + ".svc." + n.ClusterDomain
	}
	return host, domain
}

// kernelHostname is what uname says in the pod. With setHostnameAsFQDN it is
// the whole name, which is not cut: checkHostname refuses one that is too long.
func kernelHostname(p *manifest.Pod, n Node) string {
	host, domain := Hostname(p, n)
	if fqdn := p.Spec.Spec.SetHostnameAsFQDN; domain != "" && fqdn != nil && *fqdn {
		return host + "." + domain
	}
	return host
}
