package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// IsHugePagesMedium reports whether an emptyDir with this medium consists of huge pages. The medium
// must be "HugePages", or "HugePages-" and a page size. "HugePages" stands for the only page
// size that the pod requests.
func IsHugePagesMedium(medium v1.StorageMedium) bool {
	return medium == v1.StorageMediumHugePages || strings.HasPrefix(string(medium), string(v1.StorageMediumHugePagesPrefix))
}

// HugePageSize returns the page size in bytes of an emptyDir for which IsHugePagesMedium is true.
// It returns an error if the pod requests no pages of this size, because writes to the volume
// would fail.
func HugePageSize(spec *v1.PodSpec, medium v1.StorageMedium) (int64, error) {
	sizes := requestedPageSizes(spec)
	if medium == v1.StorageMediumHugePages {
		switch len(sizes) {
		case 1:
			return sizes[0], nil
		case 0:
			return 0, errors.New("the pod requests no huge pages; add a request such as hugepages-2Mi")
		}
		return 0, errors.New("the pod requests huge pages of several sizes; specify one, such as HugePages-2Mi")
	}
	name := v1.ResourceName(v1.ResourceHugePagesPrefix + strings.TrimPrefix(string(medium), string(v1.StorageMediumHugePagesPrefix)))
	size := HugePageSizeFromName(name)
	switch {
	case size == 0:
		return 0, errors.New("has no valid page size; write a medium such as HugePages-2Mi")
	case !slices.Contains(sizes, size):
		return 0, fmt.Errorf("the pod requests no huge pages of this size; add a request of %s", name)
	}
	return size, nil
}

// requestedPageSizes returns the sizes of huge pages that a pod or one of its containers
// requests.
func requestedPageSizes(spec *v1.PodSpec) []int64 {
	var requirements []v1.ResourceRequirements
	if spec.Resources != nil {
		requirements = append(requirements, *spec.Resources)
	}
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			requirements = append(requirements, list[i].Resources)
		}
	}
	sizes := map[int64]bool{}
	for _, r := range requirements {
		for name := range r.Requests {
			if size := HugePageSizeFromName(name); IsHugePagesResource(name) && size > 0 {
				sizes[size] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(sizes))
}

// HugePageSizeFromName returns the size in bytes of the huge pages of a resource such as "hugepages-2Mi". It
// returns 0 if name contains no valid size.
func HugePageSizeFromName(name v1.ResourceName) int64 {
	q, err := resource.ParseQuantity(strings.TrimPrefix(string(name), v1.ResourceHugePagesPrefix))
	if err != nil || q.Sign() <= 0 {
		return 0
	}
	return q.Value()
}
