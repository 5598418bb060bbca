package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// IsHugeMedium says that an emptyDir is of huge pages: of the one size that the
// pod requests, or of the size that the medium names.
func IsHugeMedium(medium v1.StorageMedium) bool {
	return medium == v1.StorageMediumHugePages || strings.HasPrefix(string(medium), string(v1.StorageMediumHugePagesPrefix))
}

// HugePageSize is the size in bytes of the pages of such an emptyDir. The pod
// must request some of them, or nothing could be written there.
func HugePageSize(spec *v1.PodSpec, medium v1.StorageMedium) (int64, error) {
	sizes := requestedPages(spec)
	if medium == v1.StorageMediumHugePages {
		switch len(sizes) {
		case 1:
			return sizes[0], nil
		case 0:
			return 0, errors.New("the pod requests no huge pages; request some, as hugepages-2Mi")
		}
		return 0, errors.New("the pod requests huge pages of several sizes; name one, as HugePages-2Mi")
	}
	name := v1.ResourceName(v1.ResourceHugePagesPrefix + strings.TrimPrefix(string(medium), string(v1.StorageMediumHugePagesPrefix)))
	size := pageSize(name)
	switch {
	case size == 0:
		return 0, errors.New("names no page size")
	case !slices.Contains(sizes, size):
		return 0, fmt.Errorf("the pod requests no such huge pages; request some %s", name)
	}
	return size, nil
}

// requestedPages are the sizes of huge pages that a pod or one of its containers
// requests.
func requestedPages(spec *v1.PodSpec) []int64 {
	var all []v1.ResourceRequirements
	if spec.Resources != nil {
		all = append(all, *spec.Resources)
	}
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			all = append(all, list[i].Resources)
		}
	}
	sizes := map[int64]bool{}
	for _, r := range all {
		for name := range r.Requests {
			if size := pageSize(name); IsHugePages(name) && size > 0 {
				sizes[size] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(sizes))
}
