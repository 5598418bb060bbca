package render

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// hostsHeader is the beginning of the hosts files of pods. It is identical to the kubelet's header,
// because programs search for its first line.
const hostsHeader = `# Kubernetes-managed hosts file.
127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
fe00::0	ip6-localnet
fe00::0	ip6-mcastprefix
fe00::1	ip6-allnodes
fe00::2	ip6-allrouters
`

// HostsFile returns the content of a pod's /etc/hosts. For a pod with its own network, it contains
// the addresses in ips, each with the name of the pod, and spec.hostAliases. For a host-network
// pod, it contains nodeHosts, which is the content of the node's /etc/hosts, and spec.hostAliases.
//
// For a pod with its own network but without addresses, HostsFile returns "". In that case the
// runtime chooses the file: containerd uses the file of the host, CRI-O the file of the image.
func HostsFile(p *manifest.Pod, n Node, ips []string, nodeHosts string) string {
	var b strings.Builder
	switch host, domain := hostname(p, n); {
	case p.Object.Spec.HostNetwork:
		b.WriteString("# Kubernetes-managed hosts file (host network).\n" + nodeHosts)
	case len(ips) == 0:
		return ""
	default:
		b.WriteString(hostsHeader)
		for _, ip := range ips {
			if domain != "" {
				fmt.Fprintf(&b, "%s\t%s.%s\t%s\n", ip, host, domain, host)
			} else {
				fmt.Fprintf(&b, "%s\t%s\n", ip, host)
			}
		}
	}
	writeAliases(&b, p.Object.Spec.HostAliases)
	return b.String()
}

func writeAliases(b *strings.Builder, aliases []v1.HostAlias) {
	if len(aliases) == 0 {
		return
	}
	b.WriteString("\n# Entries added by HostAliases.\n")
	for _, a := range aliases {
		fmt.Fprintf(b, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
	}
}
