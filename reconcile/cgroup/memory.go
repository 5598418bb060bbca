package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"podd/reconcile/render"
)

// minUnlimited is the smallest value that means "no limit" in cgroup v1. If there is no limit,
// cgroup v1 reports the greatest int64 that is a multiple of the page size. The page size is at
// most 64 KiB.
const minUnlimited = math.MaxInt64 &^ (64<<10 - 1)

// memoryFiles contains the names of the files with the memory in use and with the memory limit, in
// cgroup v2 and in v1.
var memoryFiles = [...]struct{ used, limit string }{
	{"memory.current", "memory.max"},
	{"memory.usage_in_bytes", "memory.limit_in_bytes"},
}

// MeasureMemory returns the memory in bytes that is charged to a cgroup, and the memory limit of
// the cgroup in bytes. limit is 0 if the cgroup has no limit. If the cgroup does not exist,
// both results are 0.
func MeasureMemory(c render.Cgroup) (used, limit int64, err error) {
	driver := driverCgroupfs
	if c.UsesSystemd {
		driver = driverSystemd
	}
	cgroupPath, err := hierarchyPath(c.Path, driver)
	if err != nil {
		return 0, 0, fmt.Errorf("measuring the memory of a cgroup: %w", err)
	}
	points, err := listMountPoints()
	if err != nil {
		return 0, 0, err
	}
	for _, point := range points {
		for _, f := range memoryFiles {
			used, err = readBytes(filepath.Join(point, cgroupPath, f.used))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				limit, err = readBytes(filepath.Join(point, cgroupPath, f.limit))
			}
			if err != nil {
				return 0, 0, fmt.Errorf("measuring the memory of cgroup %s: %w", c.Path, err)
			}
			return used, limit, nil
		}
	}
	return 0, 0, nil
}

// readBytes reads a number of bytes from file. It returns 0 if the number means "no limit".
func readBytes(file string) (int64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return parseBytes(strings.TrimSpace(string(data)))
}

// parseBytes parses the content of a file that readBytes reads.
func parseBytes(text string) (int64, error) {
	if text == "max" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if n >= minUnlimited {
		n = 0
	}
	return n, err
}
