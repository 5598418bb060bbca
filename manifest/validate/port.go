package validate

import (
	"fmt"
	"net/netip"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validatePorts(ports []v1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range ports {
		p, at := &ports[i], path.Index(i)
		switch {
		case p.Name == "":
		case names[p.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
		default:
			names[p.Name] = true
			errs = append(errs, invalidErrors(at.Child("name"), p.Name, validation.IsValidPortName(p.Name))...)
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, validatePort(at.Child("containerPort"), p.ContainerPort)...)
		}
		if p.HostPort != 0 {
			errs = append(errs, validatePort(at.Child("hostPort"), p.HostPort)...)
		}
		if p.HostIP != "" {
			errs = append(errs, validateIP(at.Child("hostIP"), p.HostIP)...)
		}
		errs = append(errs, validateOneOf(at.Child("protocol"), p.Protocol, v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP)...)
	}
	return errs
}

func validatePort(path *field.Path, port int32) field.ErrorList {
	return invalidErrors(path, port, validation.IsValidPortNum(int(port)))
}

// validateIP validates an IP address. It refuses an address with a zone, because a zone has no
// meaning in a pod.
func validateIP(path *field.Path, s string) field.ErrorList {
	if ip, err := netip.ParseAddr(s); err != nil || ip.Zone() != "" || ip.Is4In6() {
		return field.ErrorList{field.Invalid(path, s, "is not an IP address")}
	}
	return nil
}

// hostPorts is the set of host ports that a pod's containers use.
type hostPorts map[hostPort]bool

type hostPort struct {
	protocol v1.Protocol
	ip       string
	port     int32
}

// add validates ports and adds them. A host port may be used only once, and on the host
// network it must equal the container port.
func (usedPorts hostPorts) add(ports []v1.ContainerPort, hostNetwork bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, p := range ports {
		if p.HostPort == 0 {
			continue
		}
		at := path.Index(i).Child("hostPort")
		if hostNetwork && p.HostPort != p.ContainerPort {
			errs = append(errs, field.Invalid(at, p.HostPort, "must equal the containerPort, because the pod uses the host network"))
		}
		key := hostPort{p.Protocol, p.HostIP, p.HostPort}
		if key.ip == "" {
			key.ip = "0.0.0.0"
		}
		if usedPorts[key] {
			errs = append(errs, field.Duplicate(at, fmt.Sprintf("%d/%s", p.HostPort, p.Protocol)))
		}
		usedPorts[key] = true
	}
	return errs
}
