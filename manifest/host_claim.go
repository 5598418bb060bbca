package manifest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// HostClaim is a port of the host that a pod has while it runs.
type HostClaim struct {
	Protocol v1.Protocol
	Number   int32
	IP       string // as written; "" is every address
	Field    string // where it was written
}

// HostClaims are the host ports of the regular containers, then of the
// sidecars: those that a runtime maps. Init containers that end have none. Nil
// for a nil pod.
func HostClaims(p *Pod) []HostClaim {
	if p == nil {
		return nil
	}
	var claims []HostClaim
	add := func(list string, i int, ports []v1.ContainerPort) {
		for j, port := range ports {
			if port.HostPort > 0 {
				at := fmt.Sprintf("spec.%s[%d].ports[%d].hostPort", list, i, j)
				claims = append(claims, HostClaim{port.Protocol, port.HostPort, port.HostIP, at})
			}
		}
	}
	for i, c := range p.Spec.Spec.Containers {
		add("containers", i, c.Ports)
	}
	for i := range p.Spec.Spec.InitContainers {
		if c := &p.Spec.Spec.InitContainers[i]; IsSidecar(c) {
			add("initContainers", i, c.Ports)
		}
	}
	return claims
}

// Meets says that two claims exclude each other: one port of one protocol, and
// the same address or every address.
func (c HostClaim) Meets(other HostClaim) bool {
	return c.Protocol == other.Protocol && c.Number == other.Number &&
		(everyIP(c.IP) || everyIP(other.IP) || c.IP == other.IP)
}

func everyIP(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
