package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"

	"podd/manifest"
)

// validateResources validates the names and amounts of a container's resources.
func validateResources(r *v1.ResourceRequirements, path *field.Path) field.ErrorList {
	errs := validateAmounts(r.Limits, nil, path.Child("limits"))
	errs = append(errs, validateAmounts(r.Requests, r.Limits, path.Child("requests"))...)
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request, at := r.Requests[name], path.Child("requests").Key(string(name))
		limit, hasLimit := r.Limits[name]
		switch {
		case !hasLimit && !allowsOvercommit(name):
			errs = append(errs, field.Required(path.Child("limits").Key(string(name)), "must be set to the same amount as the request, because this resource cannot be overcommitted"))
		case hasLimit && !allowsOvercommit(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(at, request.String(), fmt.Sprintf("must equal the limit, %s", limit.String())))
		case hasLimit && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(at, request.String(), fmt.Sprintf("must be less than or equal to the limit, %s", limit.String())))
		}
	}
	return append(errs, validateHugePages(r, path)...)
}

// validateHugePages requires cpu or memory in addition to huge pages.
func validateHugePages(r *v1.ResourceRequirements, path *field.Path) field.ErrorList {
	hasCPUOrMemory, hasHugePages := false, false
	for _, list := range []v1.ResourceList{r.Limits, r.Requests} {
		for name := range list {
			hasCPUOrMemory = hasCPUOrMemory || name == v1.ResourceCPU || name == v1.ResourceMemory
			hasHugePages = hasHugePages || manifest.IsHugePagesResource(name)
		}
	}
	if hasHugePages && !hasCPUOrMemory {
		return field.ErrorList{field.Forbidden(path, "huge pages require a request or limit of cpu or memory")}
	}
	return nil
}

// validatePodResources validates pod-level resources (KEP-2837). A request, or a limit of huge pages,
// must not be lower than the sum of the containers' amounts. A limit must not be lower than the limit
// of any container.
func validatePodResources(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	r := spec.Resources
	if r == nil {
		return nil
	}
	errs := validateResources(r, path)
	for _, list := range []struct {
		podAmounts    v1.ResourceList
		containerSums v1.ResourceList
		isChecked     func(v1.ResourceName) bool
		path          *field.Path
	}{
		{r.Requests, manifest.ContainerRequests(spec), resourcehelper.IsSupportedPodLevelResource, path.Child("requests")},
		{r.Limits, manifest.ContainerLimits(spec), manifest.IsHugePagesResource, path.Child("limits")},
	} {
		for _, name := range slices.Sorted(maps.Keys(list.podAmounts)) {
			podAmount, containerSum := list.podAmounts[name], list.containerSums[name]
			if !resourcehelper.IsSupportedPodLevelResource(name) {
				errs = append(errs, field.NotSupported(list.path.Key(string(name)), name, []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "hugepages-<size>"}))
			} else if list.isChecked(name) && containerSum.Cmp(podAmount) > 0 {
				errs = append(errs, field.Invalid(list.path.Key(string(name)), podAmount.String(), "must not be less than the total of the containers, "+containerSum.String()))
			}
		}
	}
	return append(errs, validateContainerLimits(spec)...)
}

// validateContainerLimits requires that no container has a higher limit than its pod.
func validateContainerLimits(spec *v1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Containers {
		limits := spec.Containers[i].Resources.Limits
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			containerLimit, podLimit := limits[name], spec.Resources.Limits[name]
			if _, hasPodLimit := spec.Resources.Limits[name]; hasPodLimit && containerLimit.Cmp(podLimit) > 0 {
				at := field.NewPath("spec", "containers").Index(i).Child("resources", "limits").Key(string(name))
				errs = append(errs, field.Invalid(at, containerLimit.String(), "must be less than or equal to the limit of the pod, "+podLimit.String()))
			}
		}
	}
	return errs
}

// validateOverhead validates the overhead of the pod. In Kubernetes the overhead must be equal
// to the overhead of the RuntimeClass. Without a cluster there is no RuntimeClass object, so the
// manifest contains the overhead.
func validateOverhead(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	at := path.Child("overhead")
	errs := validateAmounts(spec.Overhead, nil, at)
	errs = append(errs, validateHugePages(&v1.ResourceRequirements{Limits: spec.Overhead}, at)...)
	if len(spec.Overhead) > 0 && (spec.RuntimeClassName == nil || *spec.RuntimeClassName == "") {
		errs = append(errs, field.Forbidden(at, "requires spec.runtimeClassName; set it, or remove the overhead"))
	}
	return errs
}

// validateAmounts validates the amounts in list. It skips an amount that is equal to the amount of
// the same resource in validatedAmounts. Otherwise an invalid limit that is also the default of the
// request would be reported twice.
func validateAmounts(list, validatedAmounts v1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q, ok := validatedAmounts[name]; ok && q.Cmp(list[name]) == 0 {
			continue
		}
		at := path.Key(string(name))
		errs = append(errs, validateResourceName(name, at)...)
		errs = append(errs, validateAmount(name, list[name], at)...)
	}
	return errs
}

// validateResourceName accepts extended resources, and the resources that Kubernetes defines for
// containers.
func validateResourceName(name v1.ResourceName, path *field.Path) field.ErrorList {
	if !strings.Contains(string(name), "/") {
		if resourcehelper.IsSupportedPodLevelResource(name) || name == v1.ResourceEphemeralStorage {
			return nil
		}
		return field.ErrorList{field.NotSupported(path, name, []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, "hugepages-<size>", "<domain>/<name>"})}
	}
	return invalidErrors(path, string(name), validation.IsQualifiedName(string(name)))
}

func validateAmount(name v1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	if q.Sign() < 0 {
		return field.ErrorList{field.Invalid(path, q.String(), "must not be negative")}
	}
	if !allowsOvercommit(name) && q.MilliValue()%1000 != 0 {
		return field.ErrorList{field.Invalid(path, q.String(), "must be an integer")}
	}
	if !manifest.IsHugePagesResource(name) {
		return nil
	}
	switch size := manifest.HugePageSizeFromName(name); {
	case size == 0:
		return field.ErrorList{field.Invalid(path, name, "has no valid page size; write a name such as hugepages-2Mi")}
	case q.Value()%size != 0:
		return field.ErrorList{field.Invalid(path, q.String(), "must be a multiple of the page size")}
	}
	return nil
}

// allowsOvercommit reports whether the limit of a resource may exceed its request. For a resource
// that is counted in whole units, the limit must be equal to the request.
func allowsOvercommit(name v1.ResourceName) bool {
	return (!strings.Contains(string(name), "/") || strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix)) && !manifest.IsHugePagesResource(name)
}

// validateResize validates the resize policies. A container that never restarts must not
// require a restart.
func validateResize(list []v1.ContainerResizePolicy, podPolicy v1.RestartPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	usedNames := map[v1.ResourceName]bool{}
	for i, p := range list {
		at := path.Index(i)
		errs = append(errs, validateOneOf(at.Child("resourceName"), p.ResourceName, v1.ResourceCPU, v1.ResourceMemory)...)
		errs = append(errs, validateOneOf(at.Child("restartPolicy"), p.RestartPolicy, v1.NotRequired, v1.RestartContainer)...)
		if podPolicy == v1.RestartPolicyNever && p.RestartPolicy == v1.RestartContainer {
			errs = append(errs, field.Invalid(at.Child("restartPolicy"), p.RestartPolicy, "must be NotRequired, because spec.restartPolicy is Never"))
		}
		if usedNames[p.ResourceName] {
			errs = append(errs, field.Duplicate(at, p.ResourceName))
		}
		usedNames[p.ResourceName] = true
	}
	return errs
}
