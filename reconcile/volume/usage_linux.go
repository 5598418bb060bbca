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
	"podd/runtime/beneath"
)

// maxUsageNames bounds the work of measuring one volume, about two seconds.
const maxUsageNames = 1 << 20

// Usage is how much an emptyDir holds.
type Usage struct {
	Bytes int64
	// Partial says that there was more than podd looks at: it uses Bytes or
	// more.
	Partial bool
}

// EmptyDirUsage measures those emptyDirs of a pod that which wants, by name. One
// that is not there yet is left out. A pod may run meanwhile.
func (d Dir) EmptyDirUsage(ctx context.Context, pod *manifest.Pod, which func(*v1.Volume) bool) (map[string]Usage, error) {
	if err := checkUID(pod.UID); err != nil {
		return nil, err
	}
	pods, err := d.open()
	if pods == nil {
		return nil, err
	}
	defer pods.Close()
	used := map[string]Usage{}
	for i := range pod.Spec.Spec.Volumes {
		v := &pod.Spec.Spec.Volumes[i]
		if v.EmptyDir == nil || !which(v) {
			continue
		}
		vol, err := pods.Sub(filepath.Join(string(pod.UID), volumesDir, emptyDirPlugin, v.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		u := Usage{}
		if err == nil {
			err = u.measure(ctx, vol, v.EmptyDir.Medium)
			vol.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("measuring volume %q of pod %s: %w", v.Name, pod.Key, err)
		}
		used[v.Name] = u
	}
	return used, nil
}

func (u *Usage) measure(ctx context.Context, vol *beneath.Dir, medium v1.StorageMedium) error {
	if medium == v1.StorageMediumMemory { // the file system knows
		var st unix.Statfs_t
		if err := unix.Fstatfs(vol.Fd(), &st); err != nil {
			return err
		}
		if int64(st.Type) == unix.TMPFS_MAGIC {
			u.Bytes = int64(st.Blocks-st.Bfree) * int64(st.Bsize)
			return nil
		}
	}
	tree, err := vol.Usage(ctx, maxUsageNames)
	u.Bytes, u.Partial = tree.Bytes, tree.Partial
	return err
}
