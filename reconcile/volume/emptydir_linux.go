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

// emptyDir is a directory that is removed with its pod: on the disk of the root directory,
// in memory or in huge pages.
type emptyDir struct{}

func (emptyDir) source() string { return "emptyDir" }

func (emptyDir) serves(v *v1.Volume) bool { return v.EmptyDir != nil }

func (emptyDir) check(*place, *v1.Volume) (string, error) { return "", nil }

func (emptyDir) prepare(_ context.Context, p *place, v *v1.Volume) (string, error) {
	path := filepath.Join(p.path, volumesDir, emptyDirPlugin, v.Name)
	dir, err := p.openPlugin(emptyDirPlugin, dirMode)
	if err != nil {
		return path, err
	}
	defer dir.Close()
	mode, gid := emptyDirMode(p.pod.Spec)
	switch medium := v.EmptyDir.Medium; {
	case medium == v1.StorageMediumDefault:
		return path, makeDirVolume(dir, v.Name, mode, gid)
	case manifest.IsHugeMedium(medium):
		pages, err := manifest.HugePageSize(&p.pod.Spec.Spec, medium)
		if err != nil {
			return path, fmt.Errorf("medium %q: %w", medium, err)
		}
		h := hugePages{size: pages, mode: mode, gid: gid}
		if limit := v.EmptyDir.SizeLimit; limit != nil {
			h.limit = limit.Value()
		}
		return path, mountHugePages(dir, v.Name, h)
	case medium == v1.StorageMediumMemory:
		size := memorySize(p.pod.Spec, v.EmptyDir.SizeLimit, p.node)
		return path, mountTmpfs(dir, v.Name, tmpfsOptions(mode, gid, size))
	}
	return path, fmt.Errorf("podd does not support the medium %q; remove it or use %q",
		v.EmptyDir.Medium, v1.StorageMediumMemory)
}

// emptyDirMode returns the mode and the group of an emptyDir, like the kubelet: every user
// of the pod can write, and with an fsGroup new files have this group. gid is -1 without
// an fsGroup.
func emptyDirMode(pod *v1.Pod) (mode uint32, gid int) {
	if s := pod.Spec.SecurityContext; s != nil && s.FSGroup != nil {
		return 0o2777, int(*s.FSGroup)
	}
	return 0o777, -1
}

func makeDirVolume(dir *safepath.Dir, name string, mode uint32, gid int) error {
	if _, err := dir.Mkdir(name, mode, gid); err != nil {
		return err
	}
	vol, err := dir.SubSameMount(name)
	if errors.Is(err, safepath.ErrMount) {
		return errors.New("something is mounted where a volume on disk belongs; unmount it")
	}
	if err != nil {
		return err
	}
	return vol.Close()
}

// mountTmpfs mounts a tmpfs unless one is mounted.
func mountTmpfs(dir *safepath.Dir, name, options string) error {
	if _, err := dir.Mkdir(name, dirMode, -1); err != nil { // visible only without the mount
		return err
	}
	vol, err := dir.SubSameMount(name)
	if errors.Is(err, safepath.ErrMount) {
		return expectTmpfs(dir, name)
	}
	if err != nil {
		return err
	}
	defer vol.Close()
	// Mount at the descriptor instead of the path, so that no link is followed.
	target := fmt.Sprintf("/proc/self/fd/%d", vol.Fd())
	err = unix.Mount("tmpfs", target, "tmpfs", 0, options+",noswap")
	if err == unix.EINVAL { // before Linux 6.4
		err = unix.Mount("tmpfs", target, "tmpfs", 0, options)
	}
	if err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	return nil
}

// tmpfsOptions returns the mount options for a tmpfs. Like the kubelet, it sets the sticky
// bit, the default of a tmpfs, so that users of the pod cannot remove each other's files.
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

func expectTmpfs(dir *safepath.Dir, name string) error {
	st, err := statfs(dir, name)
	if err != nil {
		return err
	}
	if int64(st.Type) != unix.TMPFS_MAGIC {
		return errors.New("something other than a tmpfs is mounted where a memory volume belongs; unmount it")
	}
	return nil
}
