package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"podd/reconcile/render"
	"podd/runtime/safepath"
)

// openSubPath opens a subPath of the volume at a host path. It follows only links within
// the volume. The open file is mounted, so that a container that changes the volume in the
// meantime cannot redirect the mount.
func openSubPath(host string, s render.SubPath) (*os.File, error) {
	vol, err := safepath.Open(host)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, errors.New("the volume is a file, which has no parts; mount it without a subPath")
	}
	if errors.Is(err, fs.ErrNotExist) { // a hostPath without a type was not checked before
		return nil, fmt.Errorf("the volume's host path %s is not there; make it, or use type DirectoryOrCreate", host)
	}
	if err != nil {
		return nil, err
	}
	defer vol.Close()
	f, err := follow(vol, s.Path, vol.Follow)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if !s.Make {
		return nil, errors.New("the volume has no such file; add the key, or correct the subPath")
	}
	if err := makeSubPath(vol, s.Path); err != nil {
		return nil, err
	}
	return follow(vol, s.Path, vol.Follow)
}

// follow opens a name in a volume. A link to a host path within the volume is
// treated like a relative one: its target is resolved first and then opened.
func follow[T any](vol *safepath.Dir, name string, open func(string) (T, error)) (T, error) {
	found, err := open(name)
	if !errors.Is(err, safepath.ErrOutside) {
		return found, err
	}
	top, notop := filepath.EvalSymlinks(vol.Path())
	place, noplace := filepath.EvalSymlinks(filepath.Join(vol.Path(), name))
	if errors.Is(noplace, fs.ErrNotExist) {
		return found, fs.ErrNotExist // an existing parent shows whether it is in the volume
	}
	if rel, outside := filepath.Rel(top, place); notop == nil && noplace == nil && outside == nil && filepath.IsLocal(rel) {
		return open(rel)
	}
	return found, err
}

// makeSubPath creates a directory and its parents with the permissions of the volume.
func makeSubPath(vol *safepath.Dir, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(vol.Fd(), &st); err != nil {
		return err
	}
	gid := -1
	if st.Mode&unix.S_ISGID != 0 {
		gid = int(st.Gid)
	}
	steps := strings.Split(name, "/")
	at, left, err := openDeepest(vol, steps)
	if err != nil {
		return err
	}
	for _, step := range left {
		_, err := at.Mkdir(step, st.Mode&(0o777|unix.S_ISGID|unix.S_ISVTX), gid)
		var next *safepath.Dir
		if err == nil {
			next, err = at.Sub(step)
		}
		at.Close()
		if err != nil {
			return err
		}
		at = next
	}
	return at.Close()
}

// openDeepest opens the deepest existing directory of a path, and returns the remaining
// steps.
func openDeepest(vol *safepath.Dir, steps []string) (*safepath.Dir, []string, error) {
	for n := len(steps) - 1; ; n-- {
		at, err := follow(vol, filepath.Join(append([]string{"."}, steps[:n]...)...), vol.FollowDir)
		if err == nil {
			return at, steps[n:], nil
		}
		if n == 0 || !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
	}
}

// stage bind-mounts source at a path below Root, in the directory dir, which containers
// cannot access. It replaces the mount for an earlier container unless it is the same.
func (d Dir) stage(ctx context.Context, dir *safepath.Dir, at string, source *os.File) error {
	want, err := source.Stat()
	if err != nil {
		return err
	}
	if is, err := d.staged(ctx, dir, at, want); is || err != nil {
		return err
	}
	name := filepath.Base(at)
	if want.IsDir() {
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
		return fmt.Errorf("bind-mounting it for the container: %w", err)
	}
	return nil
}

// fdPath returns the path of an open file in /proc, which always refers to this file.
func fdPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
