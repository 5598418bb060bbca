package collect

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"podd/runtime/beneath"
)

// maxUsageNames bounds the work of measuring one container's logs.
const maxUsageNames = 1 << 16

// Usage is how many bytes a container's logs have on disk, those of earlier
// attempts and rotated ones included; 0 without any. podLogs is the pod's log
// directory.
func Usage(ctx context.Context, podLogs, container string) (int64, error) {
	dir, err := openContainer(podLogs, container)
	if dir == nil {
		return 0, err
	}
	defer dir.Close()
	used, err := dir.Usage(ctx, maxUsageNames)
	if err != nil {
		return 0, fmt.Errorf("measuring logs of container %s: %w", container, err)
	}
	return used.Bytes, nil
}

// Files is what a container's logs have on disk as a kubelet counts it: without
// their directory.
func Files(ctx context.Context, podLogs, container string) (beneath.Usage, error) {
	dir, err := openContainer(podLogs, container)
	if dir == nil {
		return beneath.Usage{}, err
	}
	defer dir.Close()
	used, err := dir.Usage(ctx, maxUsageNames)
	var own unix.Stat_t
	if err == nil {
		err = unix.Fstat(dir.Fd(), &own)
	}
	if err != nil {
		return beneath.Usage{}, fmt.Errorf("measuring logs of container %s: %w", container, err)
	}
	used.Bytes, used.Inodes = used.Bytes-own.Blocks*512, used.Inodes-1
	return used, nil
}
