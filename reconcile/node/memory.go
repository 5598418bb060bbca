package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/reconcile/eviction/pressure"
)

// memInfoPath is the file that describes the memory of the host.
const memInfoPath = "/proc/meminfo"

// ReadMemInfo returns the value of a field of /proc/meminfo in bytes.
func ReadMemInfo(field string) (int64, error) {
	all, err := readMemInfo()
	if err != nil {
		return 0, err
	}
	return all.field(field)
}

// A memInfo contains the text of the fields of /proc/meminfo by name.
type memInfo map[string]string

func readMemInfo() (memInfo, error) {
	text, err := os.ReadFile(memInfoPath)
	if err != nil {
		return nil, fmt.Errorf("reading the memory of the host: %w", err)
	}
	return parseMemInfo(string(text)), nil
}

func parseMemInfo(text string) memInfo {
	all := memInfo{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			all[name] = strings.TrimSpace(value)
		}
	}
	return all
}

// field returns the value of a field in bytes.
func (m memInfo) field(name string) (int64, error) {
	text, ok := m[name]
	if !ok {
		return 0, fmt.Errorf("reading the memory of the host: %s has no field %s", memInfoPath, name)
	}
	kib, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the host: %s of %s: %w", name, memInfoPath, err)
	}
	return kib << 10, nil
}

// available returns the memory of the host and the part of it that is available to pods.
//
// As in the kubelet, only anonymous memory and page cache without its inactive part are in use. These
// are the amounts that both versions of cgroups report for the root cgroup, so the value of
// /stats/summary is the same. Memory of the kernel, such as its slab caches, counts as available,
// because the kernel releases most of it on demand.
//
// Preallocated huge pages are in use, because no process can use them as other memory. As in a kubelet
// without the feature gate HugepageAwareEviction, they are available if hugePagesAvailable is set.
func (m memInfo) available(hugePagesAvailable bool) (pressure.Observation, error) {
	var errs []error
	value := func(name string) int64 {
		n, err := m.field(name)
		errs = append(errs, err)
		return n
	}
	total := value("MemTotal")
	pageCache := value("Cached") + value("Buffers") + value("SwapCached")
	used := value("AnonPages") + pageCache - value("Inactive(file)")
	if _, ok := m["Hugetlb"]; ok && !hugePagesAvailable { // missing in a kernel without huge pages
		used += value("Hugetlb")
	}
	return pressure.Observation{Capacity: total, Available: max(total-max(used, 0), 0)}, errors.Join(errs...)
}

// ReadHugePages returns the total size in bytes of all huge pages of each page size. The keys are
// resource names, such as hugepages-2Mi.
func ReadHugePages() map[v1.ResourceName]int64 {
	const dir = "/sys/kernel/mm/hugepages"
	bytesBySize := map[v1.ResourceName]int64{}
	sizes, _ := os.ReadDir(dir) // if dir does not exist, there are no huge pages
	for _, e := range sizes {
		kib, sizeErr := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(e.Name(), "hugepages-"), "kB"), 10, 64)
		text, readErr := os.ReadFile(filepath.Join(dir, e.Name(), "nr_hugepages"))
		n, countErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if sizeErr != nil || readErr != nil || countErr != nil {
			continue
		}
		size := resource.NewQuantity(kib<<10, resource.BinarySI)
		bytesBySize[v1.ResourceName(v1.ResourceHugePagesPrefix+size.String())] = n * size.Value()
	}
	return bytesBySize
}

// ReadHugePageBytes returns the total size in bytes of all huge pages.
func ReadHugePageBytes() (total int64) {
	for _, bytes := range ReadHugePages() {
		total += bytes
	}
	return total
}
