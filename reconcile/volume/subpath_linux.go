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
	"podd/runtime/beneath"
)

// openSubPath takes hold of a part of the volume at a host path, through links
// that stay in the volume. What is held is what gets mounted: a container that
// changes the volume meanwhile changes nothing of that.
func openSubPath(host string, s render.SubPath) (*os.File, error) {
	vol, err := beneath.Open(host)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, errors.New("the volume is a file, which has no parts; mount it without a subPath")
	}
	if errors.Is(err, fs.ErrNotExist) { // a hostPath without a type is not looked at before
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
		return nil, errors.New("the volume has no such file; add the key, or mend the subPath")
	}
	if err := makeSubPath(vol, s.Path); err != nil {
		return nil, err
	}
	return follow(vol, s.Path, vol.Follow)
}

// follow opens a name in a volume. A link that names a place in the volume by
// its path on the host is as good as a relative one; where it leads is looked up
// first and then opened as any other name.
func follow[T any](vol *beneath.Dir, name string, open func(string) (T, error)) (T, error) {
	found, err := open(name)
	if !errors.Is(err, beneath.ErrOutside) {
		return found, err
	}
	top, notop := filepath.EvalSymlinks(vol.Path())
	place, noplace := filepath.EvalSymlinks(filepath.Join(vol.Path(), name))
	if errors.Is(noplace, fs.ErrNotExist) {
		return found, fs.ErrNotExist // whether it is in the volume a part of its path tells
	}
	if rel, outside := filepath.Rel(top, place); notop == nil && noplace == nil && outside == nil && filepath.IsLocal(rel) {
		return open(rel)
	}
	return found, err
}

// makeSubPath makes a directory, with its parents, that everybody may use who
// may use the volume.
func makeSubPath(vol *beneath.Dir, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(vol.Fd(), &st); err != nil {
		return err
	}
	gid := -1
	if st.Mode&unix.S_ISGID != 0 {
		gid = int(st.Gid)
	}
	steps := strings.Split(name, "/")
	at, left, err := deepest(vol, steps)
	if err != nil {
		return err
	}
	for _, step := range left {
		_, err := at.Mkdir(step, st.Mode&(0o777|unix.S_ISGID|unix.S_ISVTX), gid)
		var next *beneath.Dir
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

// deepest opens the last directory on the way that is there, and gives the steps
// that are left.
func deepest(vol *beneath.Dir, steps []string) (*beneath.Dir, []string, error) {
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

// stage has source mounted at a place below Root that no container sees, whose
// directory is dir. What was mounted there for an earlier container goes, unless
// it is the same.
func (d Dir) stage(ctx context.Context, dir *beneath.Dir, at string, source *os.File) error {
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
	if err := unix.Mount(held(source), held(target), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting it for the container: %w", err)
	}
	return nil
}

// held is a path that leads to an open file and nowhere else.
func held(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
