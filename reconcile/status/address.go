package status

import (
	"net/netip"

	v1 "k8s.io/api/core/v1"
)

// setAddresses sets the addresses of the node and of the pod. A pod without a sandbox keeps its
// previous addresses. A finished pod also keeps the previous addresses of the node.
func (o *observedPod) setAddresses(s *v1.PodStatus) {
	f := o.f
	hosts := o.hostIPs()
	for _, ip := range hosts {
		s.HostIPs = append(s.HostIPs, v1.HostIP{IP: ip})
	}
	pods := hosts
	if !f.Pod.Object.Spec.HostNetwork {
		pods = nil
		if o.sandbox != nil && o.sandbox.Ready {
			pods = OnePerFamily(o.sandbox.IPs, f.HostIPs)
		}
	}
	for _, ip := range pods {
		s.PodIPs = append(s.PodIPs, v1.PodIP{IP: ip})
	}
	if p := f.Previous; len(s.PodIPs) == 0 && p != nil {
		s.PodIPs = append(s.PodIPs, p.PodIPs...)
	}
	if len(s.HostIPs) > 0 {
		s.HostIP = s.HostIPs[0].IP
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
}

// hostIPs returns the node's addresses. For a finished pod, it returns the addresses in the pod's
// previous status.
func (o *observedPod) hostIPs() []string {
	f := o.f
	if p := f.Previous; p != nil && f.FinalPhase != "" && len(p.HostIPs) > 0 {
		var previous []string
		for _, ip := range p.HostIPs {
			previous = append(previous, ip.IP)
		}
		return previous
	}
	return OnePerFamily(f.HostIPs, f.HostIPs)
}

// OnePerFamily returns the first IPv4 and the first IPv6 address of ips. The address with the
// family of node[0] comes first. If node is empty, the IPv4 address comes first. Invalid addresses
// are skipped.
func OnePerFamily(ips, node []string) []string {
	var v4, v6 string
	for _, text := range ips {
		ip, err := netip.ParseAddr(text)
		switch {
		case err != nil:
		case ip.Unmap().Is4() && v4 == "":
			v4 = ip.Unmap().String()
		case !ip.Unmap().Is4() && v6 == "":
			v6 = ip.String()
		}
	}
	order := []string{v4, v6}
	if len(node) > 0 {
		if ip, err := netip.ParseAddr(node[0]); err == nil && !ip.Unmap().Is4() {
			order = []string{v6, v4}
		}
	}
	var result []string
	for _, ip := range order {
		if ip != "" {
			result = append(result, ip)
		}
	}
	return result
}
