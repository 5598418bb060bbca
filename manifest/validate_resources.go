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
	return nil
}

// overcommits says that more of a resource may be requested than there is;
// what is not shared by time is counted in whole numbers and never lent.
func overcommits(name v1.ResourceName) bool {
	return !strings.Contains(string(name), "/") && !hugePages(name)
}
