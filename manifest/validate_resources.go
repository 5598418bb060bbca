package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateResources checks names and amounts of what a container asks for.
func validateResources(r *v1.ResourceRequirements, path *field.Path) field.ErrorList {
	errs := validateAmounts(r.Limits, nil, path.Child("limits"))
	errs = append(errs, validateAmounts(r.Requests, r.Limits, path.Child("requests"))...)
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request, at := r.Requests[name], path.Child("requests").Key(string(name))
		limit, limited := r.Limits[name]
		switch {
		case !limited && !overcommits(name):
			errs = append(errs, field.Required(path.Child("limits").Key(string(name)), "it must be the request, this resource is not overcommitted"))
		case limited && !overcommits(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(at, request.String(), fmt.Sprintf("must be the limit, %s", limit.String())))
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(at, request.String(), fmt.Sprintf("must not be more than the limit, %s", limit.String())))
		}
	}
	return append(errs, validateHugePages(r, path)...)
}

// validateHugePages: only what is scheduled by cpu or memory may have them.
func validateHugePages(r *v1.ResourceRequirements, path *field.Path) field.ErrorList {
	compute, huge := false, false
	for _, list := range []v1.ResourceList{r.Limits, r.Requests} {
		for name := range list {
			compute = compute || name == v1.ResourceCPU || name == v1.ResourceMemory
			huge = huge || IsHugePages(name)
		}
	}
	if huge && !compute {
		return field.ErrorList{field.Forbidden(path, "huge pages need a request or limit of cpu or memory beside them")}
	}
	return nil
}

// validatePodResources checks what the pod itself asks for: what all of its
// containers share must be enough for each and, where they request it, for all
// (KEP-2837).
func validatePodResources(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	r := spec.Resources
	if r == nil {
		return nil
	}
	errs := validateResources(r, path)
	for _, list := range []struct {
		of    v1.ResourceList
		sum   v1.ResourceList
		which func(v1.ResourceName) bool
		path  *field.Path
	}{
		{r.Requests, Total(spec, Requests), IsPodLevel, path.Child("requests")},
		{r.Limits, Total(spec, Limits), IsHugePages, path.Child("limits")},
	} {
		for _, name := range slices.Sorted(maps.Keys(list.of)) {
			own, sum := list.of[name], list.sum[name]
			if !IsPodLevel(name) {
				errs = append(errs, field.NotSupported(list.path.Key(string(name)), name, []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "hugepages-<size>"}))
			} else if list.which(name) && sum.Cmp(own) > 0 {
				errs = append(errs, field.Invalid(list.path.Key(string(name)), own.String(), "must not be less than what the containers ask for together, "+sum.String()))
			}
		}
	}
	return append(errs, validateWithinPod(spec)...)
}

// validateWithinPod: no container may have more than its pod.
func validateWithinPod(spec *v1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Containers {
		limits := spec.Containers[i].Resources.Limits
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			own, all := limits[name], spec.Resources.Limits[name]
			if _, limited := spec.Resources.Limits[name]; limited && own.Cmp(all) > 0 {
				at := field.NewPath("spec", "containers").Index(i).Child("resources", "limits").Key(string(name))
				errs = append(errs, field.Invalid(at, own.String(), "must not be more than the limit of the pod, "+all.String()))
			}
		}
	}
	return errs
}

// validateOverhead checks what the pod takes beside its containers. Kubernetes
// has it from the pod's RuntimeClass and admits no other; here the class is only
// a name, so that the manifest says both.
func validateOverhead(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	at := path.Child("overhead")
	errs := validateAmounts(spec.Overhead, nil, at)
	errs = append(errs, validateHugePages(&v1.ResourceRequirements{Limits: spec.Overhead}, at)...)
	if len(spec.Overhead) > 0 && (spec.RuntimeClassName == nil || *spec.RuntimeClassName == "") {
		errs = append(errs, field.Forbidden(at, "is that of a runtime class, and spec.runtimeClassName names none; name it, or remove the overhead"))
	}
	return errs
}

// validateAmounts checks what is not in known with the same amount; a request
// that was made from a limit is no second error.
func validateAmounts(list, known v1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q, ok := known[name]; ok && q.Cmp(list[name]) == 0 {
			continue
		}
		at := path.Key(string(name))
		errs = append(errs, validateResourceName(name, at)...)
		errs = append(errs, validateAmount(name, list[name], at)...)
	}
	return errs
}

// validateResourceName takes the resources that Kubernetes knows for containers
// and those of somebody's domain.
func validateResourceName(name v1.ResourceName, path *field.Path) field.ErrorList {
	if !strings.Contains(string(name), "/") {
		if IsPodLevel(name) || name == v1.ResourceEphemeralStorage {
			return nil
		}
		return field.ErrorList{field.NotSupported(path, name, []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, "hugepages-<size>", "<domain>/<name>"})}
	}
	return invalid(path, string(name), validation.IsQualifiedName(string(name)))
}

func validateAmount(name v1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	if q.Sign() < 0 {
		return field.ErrorList{field.Invalid(path, q.String(), "must not be negative")}
	}
	if !overcommits(name) && q.MilliValue()%1000 != 0 {
		return field.ErrorList{field.Invalid(path, q.String(), "must be a whole number")}
	}
	if !IsHugePages(name) {
		return nil
	}
	switch size := pageSize(name); {
	case size == 0:
		return field.ErrorList{field.Invalid(path, name, "names no page size")}
	case q.Value()%size != 0:
		return field.ErrorList{field.Invalid(path, q.String(), "must be a multiple of the page size")}
	}
	return nil
}

// overcommits says that more of a resource may be requested than there is;
// what is not shared by time is counted in whole numbers and never lent.
func overcommits(name v1.ResourceName) bool {
	return (!strings.Contains(string(name), "/") || strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix)) && !IsHugePages(name)
}

// validateResize checks what an edited amount of a resource would do: what never
// runs again cannot be started anew.
func validateResize(list []v1.ContainerResizePolicy, pod v1.RestartPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	taken := map[v1.ResourceName]bool{}
	for i, p := range list {
		at := path.Index(i)
		errs = append(errs, oneOf(at.Child("resourceName"), p.ResourceName, sized...)...)
		errs = append(errs, oneOf(at.Child("restartPolicy"), p.RestartPolicy, v1.NotRequired, v1.RestartContainer)...)
		if pod == v1.RestartPolicyNever && p.RestartPolicy == v1.RestartContainer {
			errs = append(errs, field.Invalid(at.Child("restartPolicy"), p.RestartPolicy, "must be NotRequired, containers of this pod are not started again (spec.restartPolicy: Never)"))
		}
		if taken[p.ResourceName] {
			errs = append(errs, field.Duplicate(at, p.ResourceName))
		}
		taken[p.ResourceName] = true
	}
	return errs
}

// pageSize is that of huge pages in bytes; 0 for what is no size.
func pageSize(name v1.ResourceName) int64 {
	q, err := resource.ParseQuantity(strings.TrimPrefix(string(name), v1.ResourceHugePagesPrefix))
	if err != nil || q.Sign() <= 0 {
		return 0
	}
	return q.Value()
}
