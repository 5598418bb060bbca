package volume

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/safepath"
)

// maxUsageFiles is the maximum number of files that EmptyDirUsage counts in a volume. Counting them
// takes about two seconds. A volume with more files is treated as exceeding its limit
// (plan.DiskUse).
const maxUsageFiles = 1 << 20

// EmptyDirUsage returns the usage of an emptyDir of a pod, which may be running. exists is false if
// the emptyDir does not exist yet.
func (d Dir) EmptyDirUsage(ctx context.Context, uid types.UID, v *v1.Volume) (usage safepath.Usage, exists bool, err error) {
	if err := checkUID(uid); err != nil {
		return usage, false, err
	}
	pods, err := d.openRoot()
	if pods == nil {
		return usage, false, err
	}
	defer pods.Close()
	vol, err := pods.Sub(filepath.Join(string(uid), volumesDir, emptyDirPlugin, v.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return usage, false, nil
	}
	if err != nil {
		return usage, false, err
	}
	defer vol.Close()
	usage, err = emptyDirUsage(ctx, vol, v.EmptyDir.Medium)
	return usage, true, err
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
