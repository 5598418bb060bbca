package refs

import (
	"net"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/order"
)

// apiServerService is the key of the Service of the API server.
var apiServerService = types.NamespacedName{Namespace: v1.NamespaceDefault, Name: "kubernetes"}

// ServiceVariables returns the service environment variables of the pod, sorted by name. They
// are the variables of the API server and, unless enableServiceLinks is false, of the Services
// in the pod's namespace.
func (s *Resolved) ServiceVariables() []v1.EnvVar {
	if s == nil || s.pod == nil {
		return nil
	}
	vars := map[string]string{}
	links := s.pod.Object.Spec.EnableServiceLinks
	if s.services != nil && (links == nil || *links) {
		for name, one := range s.services.ByName {
			addVariables(one, name, vars)
		}
	}
	if s.apiServerServices != nil {
		if one, ok := s.apiServerServices.ByName[apiServerService.Name]; ok {
			addVariables(one, apiServerService.Name, vars)
		}
	}
	all := make([]v1.EnvVar, 0, len(vars))
	for name, value := range vars {
		all = append(all, v1.EnvVar{Name: name, Value: value})
	}
	order.Slice(all, func(a, b v1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// addVariables adds the variables of one Service, including the variables of Docker links.
func addVariables(s manifest.Service, name string, to map[string]string) {
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
