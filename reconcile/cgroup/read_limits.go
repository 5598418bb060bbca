package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"podd/reconcile/render"
)

// ReadLimits returns the CPU and memory limits that the cgroup c.Path has now. A CPUQuota of -1 means
// that the CPU is not limited, and a Memory of 0 that the memory is not limited. If the cgroup does not
// exist, the limits are 0.
//
// Cgroup v2 has a weight instead of CPU shares, and several shares have the same weight. If the weight
// is that of c.CPUShares, the result has c.CPUShares. Otherwise, and if c.CPUShares is 0, it has shares
// computed from the weight with the formula of the kubelet.
//
// The kernel rounds a memory limit down to whole pages. If the limit is c.Memory rounded in this way, the
// result has c.Memory, so that the same limit is not mistaken for another one.
func ReadLimits(c render.Cgroup) (render.Cgroup, error) {
	limits := render.Cgroup{Path: c.Path, UsesSystemd: c.UsesSystemd}
	cgroupPath, err := hierarchyPath(c.Path, c.Driver())
	if err != nil {
		return limits, fmt.Errorf("reading the limits of a cgroup: %w", err)
	}
	points, err := listMountPoints()
	if err != nil {
		return limits, err
	}
	for _, point := range points {
		for name, parse := range limitParsers {
			text, err := os.ReadFile(filepath.Join(point, cgroupPath, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = parse(strings.TrimSpace(string(text)), c, &limits)
			}
			if err != nil {
				return limits, fmt.Errorf("reading the limits of cgroup %s: %s: %w", c.Path, name, err)
			}
		}
	}
	return limits, nil
}

// limitParsers contains a function for each file with a limit, of cgroup v1 and v2. The function adds
// the limit to limits. desired is the parameter of ReadLimits.
var limitParsers = map[string]func(text string, desired render.Cgroup, limits *render.Cgroup) error{
	"cpu.shares": func(text string, _ render.Cgroup, limits *render.Cgroup) (err error) {
		limits.CPUShares, err = strconv.ParseInt(text, 10, 64)
		return err
	},
	"cpu.weight": func(text string, desired render.Cgroup, limits *render.Cgroup) error {
		weight, err := strconv.ParseUint(text, 10, 64)
		limits.CPUShares = int64((weight-1)*262142/9999) + 2
		if desired.CPUShares > 0 && weight == cpuWeight(desired.CPUShares) {
			limits.CPUShares = desired.CPUShares
		}
		return err
	},
	"cpu.cfs_quota_us": func(text string, _ render.Cgroup, limits *render.Cgroup) (err error) {
		limits.CPUQuota, err = strconv.ParseInt(text, 10, 64)
		return err
	},
	"cpu.cfs_period_us": func(text string, _ render.Cgroup, limits *render.Cgroup) (err error) {
		limits.CPUPeriod, err = strconv.ParseInt(text, 10, 64)
		return err
	},
	"cpu.max": func(text string, _ render.Cgroup, limits *render.Cgroup) (err error) {
		quota, period, _ := strings.Cut(text, " ")
		if limits.CPUPeriod, err = strconv.ParseInt(period, 10, 64); err != nil {
			return err
		}
		if quota == "max" {
			limits.CPUQuota = -1
			return nil
		}
		limits.CPUQuota, err = strconv.ParseInt(quota, 10, 64)
		return err
	},
	"memory.limit_in_bytes": parseMemoryLimit,
	"memory.max":            parseMemoryLimit,
}

func parseMemoryLimit(text string, desired render.Cgroup, limits *render.Cgroup) (err error) {
	limits.Memory, err = parseBytes(text)
	if limits.Memory > 0 && limits.Memory == desired.Memory-desired.Memory%int64(os.Getpagesize()) {
		limits.Memory = desired.Memory
	}
	return err
}
