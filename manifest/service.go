package manifest

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Services are those of one namespace that have an address, by name. Immutable.
type Services struct{ ByName map[string]Service }

// Equal says that both have the same Services.
func (s *Services) Equal(o *Services) bool {
	return maps.EqualFunc(s.ByName, o.ByName, func(a, b Service) bool { return a.IP == b.IP && slices.Equal(a.Ports, b.Ports) })
}

// Service is what variables are made of.
type Service struct {
	IP    string
	Ports []ServicePort
}

// ServicePort is one of its ports; at most the first has no Name.
type ServicePort struct {
	Name     string
	Protocol v1.Protocol
	Port     int32
}

// ServiceOf is nil for a Service that no variables tell of: it has no address, or
// no ports.
func ServiceOf(s *v1.Service) *Service {
	if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == v1.ClusterIPNone || len(s.Spec.Ports) == 0 {
		return nil
	}
	out := &Service{IP: s.Spec.ClusterIP}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, ServicePort{p.Name, p.Protocol, p.Port})
	}
	return out
}

// apiService is the one that tells every pod where the API server is.
var apiService = types.NamespacedName{Namespace: v1.NamespaceDefault, Name: "kubernetes"}

// ServiceVariables tell the containers of a pod where the Services of its namespace
// are, unless it wants none, and where the API server is; sorted by name.
func (s *Supply) ServiceVariables() []v1.EnvVar {
	if s == nil || s.pod == nil {
		return nil
	}
	vars := map[string]string{}
	links := s.pod.Spec.Spec.EnableServiceLinks
	if s.services != nil && (links == nil || *links) {
		for name, one := range s.services.ByName {
			one.variables(name, vars)
		}
	}
	if s.api != nil {
		if one, ok := s.api.ByName[apiService.Name]; ok {
			one.variables(apiService.Name, vars)
		}
	}
	all := make([]v1.EnvVar, 0, len(vars))
	for name, value := range vars {
		all = append(all, v1.EnvVar{Name: name, Value: value})
	}
	slices.SortFunc(all, func(a, b v1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// variables adds those of one Service: where it is, and the same as the links of
// Docker told it.
func (s Service) variables(name string, to map[string]string) {
	name = variableName(name)
	to[name+"_SERVICE_HOST"] = s.IP
	for i, p := range s.Ports {
		number := strconv.Itoa(int(p.Port))
		protocol := strings.ToLower(string(p.Protocol))
		if protocol == "" {
			protocol = "tcp"
		}
		url := protocol + "://" + net.JoinHostPort(s.IP, number)
		if i == 0 {
			to[name+"_SERVICE_PORT"] = number
			to[name+"_PORT"] = url
		}
		if p.Name != "" {
			to[name+"_SERVICE_PORT_"+variableName(p.Name)] = number
		}
		link := name + "_PORT_" + number + "_" + strings.ToUpper(protocol)
		to[link], to[link+"_PROTO"], to[link+"_PORT"], to[link+"_ADDR"] = url, protocol, number, s.IP
	}
}

func variableName(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
