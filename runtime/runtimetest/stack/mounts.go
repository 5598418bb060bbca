package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// mountsBelow returns the mount points below dir, children before parents and later mounts
// before earlier ones.
func mountsBelow(dir string) ([]string, error) {
	// Resolve symbolic links, because the paths in mountinfo contain none.
	resolvedDir, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing mounts below %s: %w", dir, err)
	}
	infos, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !isBelow(m.Mountpoint, resolvedDir), false
	})
	if err != nil {
		return nil, fmt.Errorf("listing mounts below %s: %w", dir, err)
	}
	var paths []string
	for _, m := range slices.Backward(infos) {
		paths = append(paths, m.Mountpoint)
	}
	return paths, nil
}

// isBelow reports whether path is below dir. It is false if path is dir.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// unmountBelow unmounts everything that is mounted below dir. It also detaches mounts that
// processes use, because these processes do not belong to the stack or are exiting.
func unmountBelow(dir string) error {
	deadline := time.Now().Add(time.Minute)
	for {
		paths, err := mountsBelow(dir)
		if err != nil || len(paths) == 0 {
			return err
		}
		var errs []error
		for _, p := range paths {
			if err := unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
				errs = append(errs, fmt.Errorf("unmounting %s: %w", p, err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("unmounting everything below %s: new mounts kept appearing for a minute, the last ones at %s", dir, paths)
		}
	}
}
