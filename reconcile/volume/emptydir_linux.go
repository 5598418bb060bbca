package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime/safepath"
)

const emptyDirPlugin = "kubernetes.io~empty-dir"

// emptyDir implements volumeType for volumes of type emptyDir. Such a volume is a directory that is
// removed with its pod. It is on the disk of the root directory, in memory or in huge pages.
type emptyDir struct{}

func (emptyDir) matches(v *v1.Volume) bool { return v.EmptyDir != nil }

func (emptyDir) check(*podDir, *v1.Volume) (string, error) { return "", nil }

func (emptyDir) prepare(_ context.Context, p *podDir, v *v1.Volume) (string, error) {
	path := filepath.Join(p.path, volumesDir, emptyDirPlugin, v.Name)
	dir, err := p.openPluginDir(emptyDirPlugin, dirMode)
	if err != nil {
		return path, err
	}
	defer dir.Close()
	mode, gid := emptyDirMode(p.pod.Object)
	switch medium := v.EmptyDir.Medium; {
	case medium == v1.StorageMediumDefault:
		return path, makeDirVolume(dir, v.Name, mode, gid)
	case manifest.IsHugePagesMedium(medium):
		pages, err := manifest.HugePageSize(&p.pod.Object.Spec, medium)
		if err != nil {
			return path, fmt.Errorf("medium %q: %w", medium, err)
		}
		h := hugetlbfsMount{size: pages, mode: mode, gid: gid}
		if limit := v.EmptyDir.SizeLimit; limit != nil {
			h.limit = limit.Value()
		}
		return path, mountHugePages(dir, v.Name, h)
	case medium == v1.StorageMediumMemory:
		size := memorySize(p.pod.Object, v.EmptyDir.SizeLimit, p.root.MemoryVolumeLimit)
		return path, mountTmpfs(dir, v.Name, tmpfsOptions(mode, gid, size))
	}
	return path, fmt.Errorf("podd does not support the medium %q; remove the medium or use %q",
		v.EmptyDir.Medium, v1.StorageMediumMemory)
}

// emptyDirMode returns the mode and the group ID of an emptyDir, as in the kubelet. Every user of
// the pod can write. If the pod has an fsGroup, gid is the fsGroup, and new files get this group.
// Otherwise gid is -1.
func emptyDirMode(pod *v1.Pod) (mode uint32, gid int) {
	if s := pod.Spec.SecurityContext; s != nil && s.FSGroup != nil {
		return 0o2777, int(*s.FSGroup)
	}
	return 0o777, -1
}

// makeDirVolume creates the directory dir/name unless it exists. It returns an error if something
// is mounted at the directory.
func makeDirVolume(dir *safepath.Dir, name string, mode uint32, gid int) error {
	if _, err := dir.Mkdir(name, mode, gid); err != nil {
		return err
	}
	vol, err := dir.SubSameMount(name)
	if errors.Is(err, safepath.ErrMount) {
		return errors.New("a file system is mounted at the directory of this volume; unmount it")
	}
	if err != nil {
		return err
	}
	return vol.Close()
}

// mountTmpfs mounts a tmpfs at name in dir, unless a tmpfs is mounted there.
func mountTmpfs(dir *safepath.Dir, name, options string) error {
	if _, err := dir.Mkdir(name, dirMode, -1); err != nil { // the mount hides the mount point and its mode
		return err
	}
	vol, err := dir.SubSameMount(name)
	if errors.Is(err, safepath.ErrMount) {
		return checkTmpfs(dir, name)
	}
	if err != nil {
		return err
	}
	defer vol.Close()
	// Mount at the descriptor instead of the path, so that no link is followed.
	target := fmt.Sprintf("/proc/self/fd/%d", vol.Fd())
	err = unix.Mount("tmpfs", target, "tmpfs", 0, options+",noswap")
	if err == unix.EINVAL { // Linux before 6.4 does not support noswap
		err = unix.Mount("tmpfs", target, "tmpfs", 0, options)
	}
	if err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	return nil
}

// tmpfsOptions returns the mount options for a tmpfs. They include the sticky bit, as in the
// kubelet, so that users of the pod cannot remove each other's files. A gid of -1 means that no
// group is set. A size of 0 means the default limit of the kernel.
func tmpfsOptions(mode uint32, gid int, size int64) string {
	options := fmt.Sprintf("mode=%o", mode|unix.S_ISVTX)
	if gid >= 0 {
		options += fmt.Sprintf(",gid=%d", gid)
	}
	if size > 0 {
		options += fmt.Sprintf(",size=%d", size)
	}
	return options
}

// statfs returns the status of the file system of a directory in dir.
func statfs(dir *safepath.Dir, name string) (st unix.Statfs_t, err error) {
	vol, err := dir.Sub(name)
	if err != nil {
		return st, err
	}
	defer vol.Close()
	err = unix.Fstatfs(vol.Fd(), &st)
	return st, err
}

func checkTmpfs(dir *safepath.Dir, name string) error {
	st, err := statfs(dir, name)
	if err != nil {
		return err
	}
	if int64(st.Type) != unix.TMPFS_MAGIC {
		return errors.New("the file system that is mounted at this memory-backed volume is not a tmpfs; unmount it")
	}
	return nil
}
