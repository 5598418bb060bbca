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
	enableLinks := s.pod.Object.Spec.EnableServiceLinks
	if s.services != nil && (enableLinks == nil || *enableLinks) {
		for name, service := range s.services.ByName {
			addVariables(service, name, vars)
		}
	}
	if s.apiServerServices != nil {
		if service, ok := s.apiServerServices.ByName[apiServerService.Name]; ok {
			addVariables(service, apiServerService.Name, vars)
		}
	}
	envVars := make([]v1.EnvVar, 0, len(vars))
	for name, value := range vars {
		envVars = append(envVars, v1.EnvVar{Name: name, Value: value})
	}
	order.Slice(envVars, func(a, b v1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return envVars
}

// addVariables adds the variables of one Service, including the variables of Docker links.
func addVariables(s manifest.Service, name string, vars map[string]string) {
	name = variableName(name)
	vars[name+"_SERVICE_HOST"] = s.IP
	for i, p := range s.Ports {
		number := strconv.Itoa(int(p.Port))
		protocol := strings.ToLower(string(p.Protocol))
		if protocol == "" {
			protocol = "tcp"
		}
		url := protocol + "://" + net.JoinHostPort(s.IP, number)
		if i == 0 {
			vars[name+"_SERVICE_PORT"] = number
			vars[name+"_PORT"] = url
		}
		if p.Name != "" {
			vars[name+"_SERVICE_PORT_"+variableName(p.Name)] = number
		}
		link := name + "_PORT_" + number + "_" + strings.ToUpper(protocol)
		vars[link], vars[link+"_PROTO"], vars[link+"_PORT"], vars[link+"_ADDR"] = url, protocol, number, s.IP
	}
}

func variableName(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
