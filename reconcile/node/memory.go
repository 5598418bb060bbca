package node

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// memInfoPath is the file that ReadMemInfo reads.
const memInfoPath = "/proc/meminfo"

// ReadMemInfo returns the value of a field of /proc/meminfo in bytes.
func ReadMemInfo(field string) (int64, error) {
	f, err := os.Open(memInfoPath)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the host: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		if name != field {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the memory of the host: %s of %s: %w", field, memInfoPath, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("reading the memory of the host: %s has no field %s", memInfoPath, field)
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
