package validate

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
)

// validateContainers validates regular and init containers. A name must be unique among the
// containers of both lists, because it becomes the name of a log directory.
func validateContainers(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), "a pod needs at least one container"))
	}
	names := map[string]bool{}
	volumes := volumesByName(spec.Volumes)
	ports := hostPorts{}
	for i := range spec.Containers {
		c, at := &spec.Containers[i], path.Child("containers").Index(i)
		errs = append(errs, validateContainer(c, !manifest.HasUserNamespace(spec), volumes, names, at)...)
		errs = append(errs, validateProbes(c, at)...)
		errs = append(errs, validateLifecycle(c.Lifecycle, *spec.TerminationGracePeriodSeconds, spec.OS, at.Child("lifecycle"))...)
		errs = append(errs, validateResize(c.ResizePolicy, spec.RestartPolicy, at.Child("resizePolicy"))...)
		errs = append(errs, ports.add(c.Ports, spec.HostNetwork, at.Child("ports"))...)
		errs = append(errs, validateRestart(c, at)...)
	}
	for i := range spec.InitContainers {
		c, at := &spec.InitContainers[i], path.Child("initContainers").Index(i)
		errs = append(errs, validateContainer(c, !manifest.HasUserNamespace(spec), volumes, names, at)...)
		errs = append(errs, validateResize(c.ResizePolicy, spec.RestartPolicy, at.Child("resizePolicy"))...)
		// Init containers run one after another, so they can use the same ports.
		errs = append(errs, hostPorts{}.add(c.Ports, false, at.Child("ports"))...)
		if manifest.IsSidecar(c) {
			errs = append(errs, validateProbes(c, at)...)
			errs = append(errs, validateLifecycle(c.Lifecycle, *spec.TerminationGracePeriodSeconds, spec.OS, at.Child("lifecycle"))...)
		} else {
			errs = append(errs, forbidProbes(c, at)...)
			errs = append(errs, forbidLifecycle(c, at)...)
		}
		errs = append(errs, validateInitRestart(c, at)...)
	}
	return errs
}

func validateContainer(c *v1.Container, hostUsers bool, volumes map[string]*v1.Volume, names map[string]bool, path *field.Path) field.ErrorList {
	errs := validateName(c.Name, names, path.Child("name"))
	errs = append(errs, validateImage(c.Image, path.Child("image"))...)
	errs = append(errs, validateOneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy, v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)...)
	errs = append(errs, validateOneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy, v1.TerminationMessageReadFile, v1.TerminationMessageFallbackToLogsOnError)...)
	for i, s := range c.Command {
		errs = append(errs, forbidNUL(path.Child("command").Index(i), s)...)
	}
	for i, s := range c.Args {
		errs = append(errs, forbidNUL(path.Child("args").Index(i), s)...)
	}
	errs = append(errs, forbidNUL(path.Child("workingDir"), c.WorkingDir)...)
	errs = append(errs, validatePorts(c.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, path.Child("envFrom"))...)
	errs = append(errs, validateEnv(c.Env, volumes, path.Child("env"))...)
	errs = append(errs, validateResources(&c.Resources, path.Child("resources"))...)
	errs = append(errs, validateMounts(c, volumes, path.Child("volumeMounts"))...)
	errs = append(errs, validateDevices(c, hostUsers, volumes, path.Child("volumeDevices"))...)
	return append(errs, validateSecurity(c.SecurityContext, hostUsers, path.Child("securityContext"))...)
}

func validateImage(image string, path *field.Path) field.ErrorList {
	switch {
	case image == "":
		return field.ErrorList{field.Required(path, "")}
	case strings.TrimSpace(image) != image:
		return field.ErrorList{field.Invalid(path, image, "must not begin or end with white space")}
	}
	return nil
}

// validateName validates a name, which must be a DNS label and must not be in usedNames. It adds the
// name to usedNames.
func validateName(name string, usedNames map[string]bool, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if usedNames[name] {
		return field.ErrorList{field.Duplicate(path, name)}
	}
	usedNames[name] = true
	return invalidErrors(path, name, validation.IsDNS1123Label(name))
}
