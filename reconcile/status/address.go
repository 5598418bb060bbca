package status

import (
	"net/netip"

	v1 "k8s.io/api/core/v1"
)

// addresses sets the node's and the pod's. A pod whose sandbox has gone keeps
// the addresses it had.
func (o *observed) addresses(s *v1.PodStatus) {
	f := o.f
	hosts := OnePerFamily(f.HostIPs, f.HostIPs)
	for _, ip := range hosts {
		s.HostIPs = append(s.HostIPs, v1.HostIP{IP: ip})
	}
	pods := hosts
	if !f.Pod.Spec.Spec.HostNetwork {
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

// OnePerFamily keeps the first address of each family, that of the node's
// primary address first; IPv4 where the node has none. What is no address is
// skipped.
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
	var all []string
	for _, ip := range order {
		if ip != "" {
			all = append(all, ip)
		}
	}
	return all
}
