package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// inactiveFileKeys are the keys of the inactive page cache of a cgroup and its children in the file
// memory.stat, in cgroup v2 and in v1.
var inactiveFileKeys = [...]string{"inactive_file", "total_inactive_file"}

// AllPods measures the cgroup of all pods. It remembers the directory of the cgroup, because
// reading the mount table of a node with many pods is slow. Only one goroutine may use an AllPods.
type AllPods struct {
	// Root is the parent of kubepods.
	Root string
	// Driver returns the cgroup driver in effect, "cgroupfs" or "systemd". If each driver has a cgroup of
	// all pods, the cgroup of this driver is measured. A nil Driver means cgroupfs.
	Driver func() string

	driver  string // driver for which dir was found
	dir     string // directory of the cgroup in the hierarchy for memory; "" if unknown
	version int    // index in memoryFiles
}

// Measure returns the working set and the memory limit of the cgroup of all pods, in bytes. As in the
// kubelet, the working set is the memory in use without the inactive page cache. Both results are 0
// if the cgroup does not exist. limit is 0 if the cgroup has no limit.
func (a *AllPods) Measure() (workingSet, limit int64, err error) {
	if a.Driver != nil {
		if driver := a.Driver(); driver != a.driver {
			a.driver, a.dir = driver, ""
		}
	}
	if a.dir != "" {
		workingSet, limit, err = measureWorkingSet(a.dir, a.version)
		if !errors.Is(err, fs.ErrNotExist) {
			return workingSet, limit, err
		}
		a.dir = ""
	}
	points, err := listMountPoints()
	if err != nil {
		return 0, 0, err
	}
	for i, kubepods := range AllPodsPaths(a.Root, a.driver) {
		for _, point := range points {
			for version := range memoryFiles {
				dir := filepath.Join(point, kubepods)
				workingSet, limit, err = measureWorkingSet(dir, version)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if i == 0 { // not the cgroup of another driver, because the one of this driver may be created later
					a.dir, a.version = dir, version
				}
				return workingSet, limit, err
			}
		}
	}
	return 0, 0, nil
}

// measureWorkingSet returns the working set and the limit of the cgroup in dir. version is the index
// in memoryFiles. The error is fs.ErrNotExist if dir has no memory controller of this version.
func measureWorkingSet(dir string, version int) (workingSet, limit int64, err error) {
	used, err := readBytes(filepath.Join(dir, memoryFiles[version].used))
	if err != nil {
		return 0, 0, err
	}
	if limit, err = readBytes(filepath.Join(dir, memoryFiles[version].limit)); err != nil {
		return 0, 0, err
	}
	inactive, err := readStat(filepath.Join(dir, "memory.stat"), inactiveFileKeys[version])
	return max(used-inactive, 0), limit, err
}

// readStat returns the value of a key in a file with lines of the form "key value".
func readStat(file, key string) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key+" "); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no line %s", file, key)
}
