package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/volume/csi"
	"podd/reconcile/volume/subpath"
	"podd/runtime/safepath"
)

// HasData reports whether a pod's directory contains mounts, or volumes with anything but empty
// directories. It does not access the mounts.
func (d Dir) HasData(ctx context.Context, uid types.UID) (bool, error) {
	if err := checkUID(uid); err != nil {
		return false, err
	}
	pods, err := d.openRoot()
	if pods == nil {
		return false, err
	}
	defer pods.Close()
	if mounts, err := d.mountsBelow(string(uid)); err != nil || len(mounts) > 0 {
		return len(mounts) > 0, err
	}
	pod, err := pods.SubSameMount(string(uid))
	if err != nil {
		return false, fmt.Errorf("searching for data in the directory of pod %s: %w", uid, err)
	}
	defer pod.Close()
	for _, name := range []string{volumesDir, subpath.DirName, csi.DevicesDir} {
		if hasData, err := hasFiles(ctx, pod, name); err != nil || hasData {
			return hasData, err
		}
	}
	return false, nil
}

// hasFiles reports whether the directory dir/name contains anything other than empty directories.
// It also returns true if dir/name is a mount point or is not a directory. It returns false if
// dir/name does not exist.
func hasFiles(ctx context.Context, dir *safepath.Dir, name string) (bool, error) {
	subdir, err := dir.SubSameMount(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, safepath.ErrLink), errors.Is(err, safepath.ErrMount):
		return true, nil
	case err != nil:
		return false, err
	}
	defer subdir.Close()
	return subdir.HasFiles(ctx)
}

// Size returns the disk space that a pod's directory uses, without the mounts in the directory. It
// counts at most maxUsageFiles files.
func (d Dir) Size(ctx context.Context, uid types.UID) (safepath.Usage, error) {
	if err := checkUID(uid); err != nil {
		return safepath.Usage{}, err
	}
	pods, err := d.openRoot()
	if pods == nil {
		return safepath.Usage{}, err
	}
	defer pods.Close()
	pod, err := pods.SubSameMount(string(uid))
	if err != nil {
		return safepath.Usage{}, fmt.Errorf("measuring the directory of pod %s: %w", uid, err)
	}
	defer pod.Close()
	return pod.Usage(ctx, maxUsageFiles)
}
