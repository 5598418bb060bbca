package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"podd/runtime/flock"
)

// lockPollInterval is the interval at which LockDir tries to lock a directory that another process has
// locked.
const lockPollInterval = 100 * time.Millisecond

// LockDir creates the directory of the sockets if necessary, waits until no other process has locked
// it, and locks it until release is called or the process exits. Only the process with the lock may
// call PrepareDir and serve the registration, because plugins use one socket in the directory. If
// LockDir must wait, it calls onWait once. It returns ctx.Err() if ctx is done before it has the lock.
//
// LockDir locks the file dir+".lock", which is outside the directory. The pods of plugins mount the
// directory, so each of them could lock a file in it, or the directory itself, and never unlock it.
func LockDir(ctx context.Context, dir string, onWait func()) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("creating the directory of device plugins: %w", err)
	}
	f, err := openLockFile(lockFile(dir))
	if err != nil {
		return nil, fmt.Errorf("opening the lock file of the directory of device plugins: %w", err)
	}
	if err := flock.Lock(ctx, int(f.Fd()), lockPollInterval, onWait); err != nil {
		f.Close()
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("locking the directory of device plugins with %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

func lockFile(dir string) string { return filepath.Clean(dir) + ".lock" }

// openLockFile opens the regular file at path and creates it if necessary. It does not follow a
// symbolic link at path.
func openLockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, which podd does not follow; remove it", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; remove it", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
