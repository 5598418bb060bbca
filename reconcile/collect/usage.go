package collect

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"podd/runtime/safepath"
)

// maxMeasuredFiles is the maximum number of files that are measured per container.
const maxMeasuredFiles = 1 << 16

// MeasureUsage returns the disk usage of a container's log directory, with the rotated logs and the
// logs of earlier attempts. It returns zero if the directory does not exist. podLogs is the pod's
// log directory. If measuring fails, the result contains the usage that was measured before the
// error.
func MeasureUsage(ctx context.Context, podLogs, container string) (safepath.Usage, error) {
	dir, err := openContainerLogs(podLogs, container)
	if dir == nil {
		return safepath.Usage{}, err
	}
	defer dir.Close()
	usage, err := dir.Usage(ctx, maxMeasuredFiles)
	if err != nil {
		return usage, fmt.Errorf("measuring logs of container %s: %w", container, err)
	}
	return usage, nil
}

// MeasureFiles is like MeasureUsage, but does not count the directory itself, as in the kubelet. If
// MeasureFiles returns an error, the result is zero.
func MeasureFiles(ctx context.Context, podLogs, container string) (safepath.Usage, error) {
	dir, err := openContainerLogs(podLogs, container)
	if dir == nil {
		return safepath.Usage{}, err
	}
	defer dir.Close()
	usage, err := dir.Usage(ctx, maxMeasuredFiles)
	var dirStat unix.Stat_t
	if err == nil {
		err = unix.Fstat(dir.Fd(), &dirStat)
	}
	if err != nil {
		return safepath.Usage{}, fmt.Errorf("measuring logs of container %s: %w", container, err)
	}
	usage.Bytes, usage.Inodes = usage.Bytes-dirStat.Blocks*512, usage.Inodes-1
	return usage, nil
}
