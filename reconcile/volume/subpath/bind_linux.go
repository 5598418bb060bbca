package subpath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"podd/runtime/safepath"
)

// dirMode is the mode of a mount point that is a directory.
const dirMode = 0o750

// Bind bind-mounts source, a file or directory, at name in dir. Containers must not be able to
// access dir. Bind replaces an existing mount at name, unless source is already mounted there. An
// existing mount must not be a remote mount, because Bind opens it.
func Bind(ctx context.Context, dir *safepath.Dir, name string, source *os.File) error {
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if isMounted(dir, name, info) {
		return nil
	}
	if err := removeMountPoint(dir, name); err != nil {
		return err
	}
	if info.IsDir() {
		_, err = dir.Mkdir(name, dirMode, -1)
	} else {
		var f *os.File
		if f, err = dir.Create(name, 0o600); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return err
	}
	target, err := dir.Follow(name)
	if err != nil {
		return err
	}
	defer target.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := unix.Mount(fdPath(source), fdPath(target), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind-mounting the subPath for the container: %w", err)
	}
	return nil
}

// isMounted reports whether the file that info describes is mounted at name in dir. It returns
// false if name cannot be opened, because Bind then gets the error when it creates name.
func isMounted(dir *safepath.Dir, name string, info fs.FileInfo) bool {
	f, err := dir.Follow(name)
	if err != nil {
		return false
	}
	defer f.Close()
	mountedInfo, err := f.Stat()
	return err == nil && os.SameFile(info, mountedInfo)
}

// removeMountPoint unmounts everything at name and removes the mount point.
func removeMountPoint(dir *safepath.Dir, name string) error {
	if err := Unbind(dir, name); err != nil {
		return err
	}
	return dir.RemoveAll(context.Background(), name)
}

// maxStackedMounts is the maximum number of mounts at one path that Unbind unmounts.
const maxStackedMounts = 64

// Unbind unmounts all bind mounts at name in dir and below name. It returns nil if there are no
// mounts. Unbind makes the mounts private first, so that their originals are not unmounted. It
// unmounts them lazily, because no container uses them.
func Unbind(dir *safepath.Dir, name string) error {
	for range maxStackedMounts {
		f, err := dir.Follow(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		err = unix.Mount("", fdPath(f), "", unix.MS_REC|unix.MS_PRIVATE, "")
		if err == nil {
			err = unix.Unmount(fdPath(f), unix.MNT_DETACH)
		}
		f.Close()
		if err == unix.EINVAL { // nothing is mounted at name
			return nil
		}
		if err != nil {
			return err
		}
	}
	return unix.EBUSY
}

// fdPath returns a path in /proc that always refers to the open file f.
func fdPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
