package validate

import (
	"fmt"
	"regexp"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
)

// A sysctl name consists of parts separated by one dot or slash. It becomes a path below
// /proc/sys and cannot lead out of it.
const (
	sysctlPart      = `[a-z0-9]([-_a-z0-9]*[a-z0-9])?`
	maxSysctlLength = 253
)

var sysctlPattern = regexp.MustCompile(`^(` + sysctlPart + `[\./])*` + sysctlPart + `$`)

func validateSysctls(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	set := map[string]bool{}
	for i, s := range spec.SecurityContext.Sysctls {
		at := path.Index(i).Child("name")
		name := manifest.SysctlName(s.Name)
		errs = append(errs, forbidNUL(path.Index(i).Child("value"), s.Value)...)
		switch host := hostNamespaceField(s.Name, spec); {
		case s.Name == "":
			errs = append(errs, field.Required(at, ""))
		case len(s.Name) > maxSysctlLength || !sysctlPattern.MatchString(s.Name):
			errs = append(errs, field.Invalid(at, s.Name, "is not the name of a sysctl, such as net.ipv4.tcp_syncookies"))
		case set[name]:
			errs = append(errs, field.Duplicate(at, s.Name))
		case host != "":
			errs = append(errs, field.Invalid(at, s.Name, fmt.Sprintf("would change the node, because %s is true", host)))
		}
		set[name] = true
	}
	return errs
}

// hostNamespaceField returns the field that makes a pod use the node's namespace for a sysctl, or
// "" if none does. If the pod uses the namespace of the node, the sysctl would change the node.
func hostNamespaceField(name string, spec *v1.PodSpec) string {
	switch ns := manifest.SysctlNamespace(name); {
	case ns == "net" && spec.HostNetwork:
		return "hostNetwork"
	case ns == "ipc" && spec.HostIPC:
		return "hostIPC"
	}
	return ""
}
