package manifest

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Services contains the Services of one namespace by name. Services without an address are omitted.
// It is immutable.
type Services struct{ ByName map[string]Service }

// Equal reports whether s and o contain the same Services.
func (s *Services) Equal(o *Services) bool {
	return maps.EqualFunc(s.ByName, o.ByName, func(a, b Service) bool { return a.IP == b.IP && slices.Equal(a.Ports, b.Ports) })
}

// A Service contains the data for service environment variables.
type Service struct {
	IP    string
	Ports []ServicePort
}

// A ServicePort is a port of a Service. Only the first port of a Service may have no Name.
type ServicePort struct {
	Name     string
	Protocol v1.Protocol
	Port     int32
}

// NewService returns the data of s. It returns nil if s has no address or no ports, because such
// a Service has no environment variables.
func NewService(s *v1.Service) *Service {
	if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == v1.ClusterIPNone || len(s.Spec.Ports) == 0 {
		return nil
	}
	service := &Service{IP: s.Spec.ClusterIP}
	for _, p := range s.Spec.Ports {
		service.Ports = append(service.Ports, ServicePort{p.Name, p.Protocol, p.Port})
	}
	return service
}
