package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime/safepath"
)

// maxUsageFiles is the maximum number of files that EmptyDirUsage counts in a volume. Counting them
// takes about two seconds. A volume with more files is treated as exceeding its limit
// (plan.DiskUse).
const maxUsageFiles = 1 << 20

// EmptyDirUsage returns the usage of emptyDirs of a pod, by volume name. It measures only the
// emptyDirs for which the function include returns true, and omits emptyDirs that do not exist yet.
// If EmptyDirUsage returns an error, the result contains the usage of the emptyDirs that could be
// measured. The pod may be running.
func (d Dir) EmptyDirUsage(ctx context.Context, pod *manifest.Pod, include func(*v1.Volume) bool) (map[string]safepath.Usage, error) {
	if err := checkUID(pod.UID); err != nil {
		return nil, err
	}
	pods, err := d.openRoot()
	if pods == nil {
		return nil, err
	}
	defer pods.Close()
	used := map[string]safepath.Usage{}
	var failed []error
	for i := range pod.Object.Spec.Volumes {
		v := &pod.Object.Spec.Volumes[i]
		if v.EmptyDir == nil || !include(v) {
			continue
		}
		vol, err := pods.Sub(filepath.Join(string(pod.UID), volumesDir, emptyDirPlugin, v.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			used[v.Name], err = emptyDirUsage(ctx, vol, v.EmptyDir.Medium)
			vol.Close()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("measuring volume %q of pod %s: %w", v.Name, pod.Key, err))
		}
	}
	return used, errors.Join(failed...)
}

func emptyDirUsage(ctx context.Context, vol *safepath.Dir, medium v1.StorageMedium) (safepath.Usage, error) {
	if medium == v1.StorageMediumMemory { // a tmpfs, for which fstatfs returns the usage
		var st unix.Statfs_t
		if err := unix.Fstatfs(vol.Fd(), &st); err != nil {
			return safepath.Usage{}, err
		}
		if int64(st.Type) == unix.TMPFS_MAGIC {
			return safepath.Usage{Bytes: int64(st.Blocks-st.Bfree) * int64(st.Bsize)}, nil
		}
	}
	return vol.Usage(ctx, maxUsageFiles)
}
