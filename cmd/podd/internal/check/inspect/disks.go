package inspect

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/config"
	"podd/reconcile/node"
)

// diskTimeout limits the time for each directory.
const diskTimeout = 2 * time.Second

// readDirectories returns the directories of podd and the image file system. The parameter images
// is the path of the image file system, or "" if it is unknown.
func readDirectories(ctx context.Context, cfg *config.Paths, images string) []check.Directory {
	dirs := []check.Directory{
		{Purpose: check.PurposeRootDir, Path: cfg.RootDir}, {Purpose: check.PurposeRunDir, Path: cfg.RunDir}, {Purpose: check.PurposeLogsDir, Path: cfg.PodLogsDir},
	}
	if images != "" {
		dirs = append(dirs, check.Directory{Purpose: check.PurposeImageFS, Path: images})
	}
	for i, d := range dirs {
		dirs[i] = readDirectory(ctx, d)
	}
	return slices.DeleteFunc(dirs, func(d check.Directory) bool {
		// Omit the image file system if its path does not exist on this host. In this case, the
		// runtime has another root directory, for example in a container.
		return d.Purpose == check.PurposeImageFS && d.Err == nil && d.Existing != d.Path
	})
}

// readDirectory returns d with the state of the directory. If the disk does not respond, it returns
// d with an error in d.Err after diskTimeout. It then does not wait for its goroutine, because a
// system call on a hung disk cannot be interrupted.
func readDirectory(ctx context.Context, d check.Directory) check.Directory {
	ctx, cancel := context.WithTimeout(ctx, diskTimeout)
	defer cancel()
	result := make(chan check.Directory, 1)
	go func() { result <- statDirectory(d) }()
	select {
	case r := <-result:
		return r
	case <-ctx.Done():
		d.Err = check.ErrHungDisk
		return d
	}
}

func statDirectory(d check.Directory) check.Directory {
	if d.Existing, d.Err = findExisting(d.Path); d.Err == nil {
		d.Err = statExisting(&d)
	}
	if pathErr, ok := errors.AsType[*fs.PathError](d.Err); ok && pathErr.Path == d.Path {
		d.Err = pathErr.Err // the report contains d.Path in any case
	}
	return d
}

// statExisting sets the fields of d that depend on d.Existing. Its errors are of the type *fs.PathError.
func statExisting(d *check.Directory) error {
	var st unix.Statfs_t
	if err := unix.Statfs(d.Existing, &st); err != nil {
		return &fs.PathError{Op: "statfs", Path: d.Existing, Err: err}
	}
	d.IsReadOnly, d.IsNoExec = st.Flags&unix.ST_RDONLY != 0, st.Flags&unix.ST_NOEXEC != 0
	f, err := node.StatFilesystem(d.Existing)
	if err != nil {
		return err
	}
	d.Space = f.Space
	if err := unix.Access(d.Existing, unix.W_OK|unix.X_OK); err != nil && !d.IsReadOnly {
		return &fs.PathError{Op: "access", Path: d.Existing, Err: err}
	}
	return nil
}

// findExisting returns the deepest existing directory of path. It returns an error if a part of path
// is not a directory. Its errors are of the type *fs.PathError.
func findExisting(path string) (string, error) {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			continue
		case err != nil:
			return "", err
		case !info.IsDir():
			return "", &fs.PathError{Op: "stat", Path: at, Err: unix.ENOTDIR}
		}
		return at, nil
	}
}
