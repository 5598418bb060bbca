package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockPollInterval is the interval at which LockDir tries to lock a directory that another process has
// locked, because flock does not support a context.
const lockPollInterval = 100 * time.Millisecond

// LockDir creates the directory of the sockets if necessary, waits until no other process has locked
// it, and locks it until release is called or the process exits. Only the process with the lock may
// call PrepareDir and serve the registration, because plugins use one socket in the directory. If
// LockDir must wait, it calls onWait once. It returns ctx.Err() if ctx is done before it has the lock.
func LockDir(ctx context.Context, dir string, onWait func()) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("creating the directory of device plugins: %w", err)
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("locking the directory of device plugins: %w", err)
	}
	if err := lock(ctx, f, onWait); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// lock locks f as LockDir does.
func lock(ctx context.Context, f *os.File, onWait func()) error {
	again := time.NewTicker(lockPollInterval)
	defer again.Stop()
	for isWaiting := false; ; isWaiting = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("locking the directory of device plugins %s: %w", f.Name(), err)
		}
		if !isWaiting {
			onWait()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}
