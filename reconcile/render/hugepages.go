package render

import (
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// hugePages returns a limit for every huge page size of the host. The limit of a size that
// is not in limits is 0.
func hugePages(sizes []string, limits v1.ResourceList) []*cri.HugepageLimit {
	limitBySize := map[string]uint64{}
	for name, q := range limits {
		if size, ok := hugePageSize(name); ok {
			limitBySize[size] = uint64(max(q.Value(), 0))
		}
	}
	var result []*cri.HugepageLimit
	for _, size := range sizes {
		result = append(result, &cri.HugepageLimit{PageSize: size, Limit: limitBySize[size]})
	}
	return result
}

// maxHugePageBytes is a limit that is larger than the huge pages of any host. The kubelet uses the same value
// for QoS classes.
const maxHugePageBytes = 1 << 62

// unlimitedHugePages returns limits without effect for the cgroup of all pods, because each pod has its own
// limits. They replace those of a kubelet, which are the huge pages that existed when it started. Without
// this, pods could not use huge pages that were added later.
func unlimitedHugePages(sizes []string) (limits []*cri.HugepageLimit) {
	for _, size := range sizes {
		limits = append(limits, &cri.HugepageLimit{PageSize: size, Limit: maxHugePageBytes})
	}
	return limits
}

// hugePageSize returns the page size in a resource name in the format of the kernel: "2MB" for
// hugepages-2Mi. ok is false for other resources.
func hugePageSize(name v1.ResourceName) (text string, ok bool) {
	text, ok = strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
	if !ok {
		return "", false
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return "", false
	}
	units := []string{"B", "KB", "MB", "GB", "TB", "PB"}
	size, i := q.Value(), 0
	for size > 0 && size%1024 == 0 && i < len(units)-1 {
		size, i = size/1024, i+1
	}
	return strconv.FormatInt(size, 10) + units[i], true
}
