package validate

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/util/sysctl"

	"podd/manifest"
	"podd/manifest/lazyregexp"
)

// A sysctl name consists of parts separated by one dot or slash. It becomes a path below
// /proc/sys and cannot lead out of it.
const (
	sysctlPart      = `[a-z0-9]([-_a-z0-9]*[a-z0-9])?`
	sysctlParents   = `^(` + sysctlPart + `[./])*`
	maxSysctlLength = 253
)

var (
	sysctlName     = lazyregexp.New(sysctlParents + sysctlPart + `$`)
	sysctlWildcard = lazyregexp.New(sysctlParents + `([a-z0-9][-_a-z0-9]*)?\*$`)
)

// IsSysctlName reports whether name has the form of a sysctl's name. The kernel may have no sysctl of
// this name.
func IsSysctlName(name string) bool {
	return len(name) <= maxSysctlLength && sysctlName().MatchString(name)
}

// IsSysctlPattern reports whether pattern has the form of a sysctl's name, or consists of the
// beginning of a name and *.
func IsSysctlPattern(pattern string) bool {
	return IsSysctlName(pattern) || len(pattern) <= maxSysctlLength && sysctlWildcard().MatchString(pattern)
}

func validateSysctls(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	usedNames := map[string]bool{}
	for i, s := range spec.SecurityContext.Sysctls {
		at := path.Index(i).Child("name")
		name := sysctl.NormalizeName(s.Name)
		errs = append(errs, forbidNUL(path.Index(i).Child("value"), s.Value)...)
		switch cause := hostNamespaceCause(s.Name, spec); {
		case s.Name == "":
			errs = append(errs, field.Required(at, ""))
		case !IsSysctlName(s.Name):
			errs = append(errs, field.Invalid(at, s.Name, "is not the name of a sysctl, such as net.ipv4.tcp_syncookies"))
		case usedNames[name]:
			errs = append(errs, field.Duplicate(at, s.Name))
		case cause != "":
			errs = append(errs, field.Invalid(at, s.Name, fmt.Sprintf("would change the node, because %s", cause)))
		}
		usedNames[name] = true
	}
	return errs
}

// hostNamespaceCause returns why a pod uses the host's network or IPC namespace for a sysctl; "" if it
// does not. It ignores other namespaces, because the API server accepts their sysctls; the node
// rejects the pod later.
func hostNamespaceCause(name string, spec *v1.PodSpec) string {
	ns, _, _ := sysctl.GetNamespace(name)
	if ns != sysctl.NetNamespace && ns != sysctl.IPCNamespace {
		return ""
	}
	return manifest.HostNamespaceCause(ns, spec)
}
