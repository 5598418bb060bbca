package collect

import (
	"context"
	"fmt"
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
