package manifest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// A PortReservation is a host port that a pod reserves while it runs.
type PortReservation struct {
	Protocol  v1.Protocol
	Number    int32
	IP        string // as in the manifest; "" means all addresses
	FieldPath string // path of the field
}

// ListPortReservations returns the host ports of the regular containers, followed by those of the
// sidecars. Other init containers reserve no ports, because runtimes do not map them. It
// returns nil if p is nil.
func ListPortReservations(p *Pod) []PortReservation {
	if p == nil {
		return nil
	}
	var reservations []PortReservation
	add := func(list string, i int, ports []v1.ContainerPort) {
		for j, port := range ports {
			if port.HostPort > 0 {
				at := fmt.Sprintf("spec.%s[%d].ports[%d].hostPort", list, i, j)
				reservations = append(reservations, PortReservation{port.Protocol, port.HostPort, port.HostIP, at})
			}
		}
	}
	for i, c := range p.Object.Spec.Containers {
		add("containers", i, c.Ports)
	}
	for i := range p.Object.Spec.InitContainers {
		if c := &p.Object.Spec.InitContainers[i]; IsSidecar(c) {
			add("initContainers", i, c.Ports)
		}
	}
	return reservations
}

// ConflictsWith reports whether two reservations have the same port, the same protocol and a common
// address. A reservation for all addresses has a common address with every reservation.
func (r PortReservation) ConflictsWith(other PortReservation) bool {
	return r.Protocol == other.Protocol && r.Number == other.Number &&
		(isAnyIP(r.IP) || isAnyIP(other.IP) || r.IP == other.IP)
}

func isAnyIP(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
