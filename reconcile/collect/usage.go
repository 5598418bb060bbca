package collect

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"podd/runtime/safepath"
)

// maxUsageNames is the maximum number of files that are measured per container.
const maxUsageNames = 1 << 16

// Usage returns the disk usage of a container's logs, including rotated ones and those of
// earlier attempts; zero if there are none. podLogs is the pod's log directory. If Usage
// returns an error, the result has the part that could be measured.
func Usage(ctx context.Context, podLogs, container string) (safepath.Usage, error) {
	dir, err := openContainer(podLogs, container)
	if dir == nil {
		return safepath.Usage{}, err
	}
	defer dir.Close()
	used, err := dir.Usage(ctx, maxUsageNames)
	if err != nil {
		return used, fmt.Errorf("measuring logs of container %s: %w", container, err)
	}
	return used, nil
}

// Files is like Usage, but without the directory itself, as in the kubelet. If it returns
// an error, the result is zero.
func Files(ctx context.Context, podLogs, container string) (safepath.Usage, error) {
	dir, err := openContainer(podLogs, container)
	if dir == nil {
		return safepath.Usage{}, err
	}
	defer dir.Close()
	used, err := dir.Usage(ctx, maxUsageNames)
	var own unix.Stat_t
	if err == nil {
		err = unix.Fstat(dir.Fd(), &own)
	}
	if err != nil {
		return safepath.Usage{}, fmt.Errorf("measuring logs of container %s: %w", container, err)
	}
	used.Bytes, used.Inodes = used.Bytes-own.Blocks*512, used.Inodes-1
	return used, nil
}
