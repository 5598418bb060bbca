package validate

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
)

func validatePodSecurity(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	sc := spec.SecurityContext
	errs := validateID(path.Child("runAsUser"), sc.RunAsUser, validation.IsValidUserID)
	errs = append(errs, validateID(path.Child("runAsGroup"), sc.RunAsGroup, validation.IsValidGroupID)...)
	for i := range sc.SupplementalGroups {
		errs = append(errs, validateID(path.Child("supplementalGroups").Index(i), &sc.SupplementalGroups[i], validation.IsValidGroupID)...)
	}
	errs = append(errs, validateID(path.Child("fsGroup"), sc.FSGroup, validation.IsValidGroupID)...)
	if p := sc.FSGroupChangePolicy; p != nil {
		errs = append(errs, validateOneOf(path.Child("fsGroupChangePolicy"), *p, v1.FSGroupChangeAlways, v1.FSGroupChangeOnRootMismatch)...)
	}
	errs = append(errs, validateSysctls(spec, path.Child("sysctls"))...)
	if p := sc.SupplementalGroupsPolicy; p != nil {
		errs = append(errs, validateOneOf(path.Child("supplementalGroupsPolicy"), *p, v1.SupplementalGroupsPolicyMerge, v1.SupplementalGroupsPolicyStrict)...)
	}
	if p := sc.SELinuxChangePolicy; p != nil {
		errs = append(errs, validateOneOf(path.Child("seLinuxChangePolicy"), *p, v1.SELinuxChangePolicyMountOption, v1.SELinuxChangePolicyRecursive)...)
	}
	errs = append(errs, validateAppArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
	return append(errs, validateSeccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
}

// validateUserNamespace refuses other namespaces of the node if the pod has its own user namespace.
func validateUserNamespace(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !manifest.HasUserNamespace(spec) {
		return nil
	}
	for _, hostNamespace := range []struct {
		field  string
		isUsed bool
	}{{"hostNetwork", spec.HostNetwork}, {"hostPID", spec.HostPID}, {"hostIPC", spec.HostIPC}} {
		if hostNamespace.isUsed {
			errs = append(errs, field.Forbidden(path.Child(hostNamespace.field), "cannot be true if hostUsers is false"))
		}
	}
	return errs
}

func validateSecurity(sc *v1.SecurityContext, hostUsers bool, path *field.Path) field.ErrorList {
	if sc == nil {
		return nil
	}
	errs := validateID(path.Child("runAsUser"), sc.RunAsUser, validation.IsValidUserID)
	errs = append(errs, validateID(path.Child("runAsGroup"), sc.RunAsGroup, validation.IsValidGroupID)...)
	errs = append(errs, validateSeccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
	errs = append(errs, validateAppArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
	if p := sc.ProcMount; p != nil {
		at := path.Child("procMount")
		errs = append(errs, validateOneOf(at, *p, v1.DefaultProcMount, v1.UnmaskedProcMount)...)
		if *p == v1.UnmaskedProcMount && hostUsers {
			errs = append(errs, field.Invalid(at, *p, "requires hostUsers: false, because otherwise the container could change settings of the node"))
		}
	}
	if sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation {
		return errs
	}
	at := path.Child("allowPrivilegeEscalation")
	if sc.Privileged != nil && *sc.Privileged {
		errs = append(errs, field.Forbidden(at, "cannot be false if privileged is true"))
	}
	if sc.Capabilities != nil && slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN") {
		errs = append(errs, field.Forbidden(at, "cannot be false with the capability CAP_SYS_ADMIN"))
	}
	return errs
}

func validateID(path *field.Path, id *int64, check func(int64) []string) field.ErrorList {
	if id == nil {
		return nil
	}
	return invalidErrors(path, *id, check(*id))
}

func validateSeccomp(p *v1.SeccompProfile, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	isLocal := p.Type == v1.SeccompProfileTypeLocalhost
	errs := validateOneOf(path.Child("type"), p.Type, v1.SeccompProfileTypeRuntimeDefault, v1.SeccompProfileTypeUnconfined, v1.SeccompProfileTypeLocalhost)
	switch {
	case isLocal && (p.LocalhostProfile == nil || *p.LocalhostProfile == ""):
		errs = append(errs, field.Required(path.Child("localhostProfile"), "type Localhost requires a profile"))
	case !isLocal && p.LocalhostProfile != nil:
		errs = append(errs, field.Forbidden(path.Child("localhostProfile"), "may be set for type Localhost only"))
	case isLocal:
		errs = append(errs, validateRelativePath(*p.LocalhostProfile, path.Child("localhostProfile"))...)
	}
	return errs
}

// validateRelativePath validates a path relative to a directory of the node.
func validateRelativePath(name string, path *field.Path) field.ErrorList {
	switch {
	case strings.HasPrefix(name, "/"):
		return field.ErrorList{field.Invalid(path, name, "must not begin with /")}
	case slices.Contains(strings.Split(name, "/"), ".."):
		return field.ErrorList{field.Invalid(path, name, "must not contain ..")}
	}
	return forbidNUL(path, name)
}
