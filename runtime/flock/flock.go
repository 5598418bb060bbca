// Package flock waits for locks of files (flock(2)).
package flock

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Lock locks the open file with the descriptor fd exclusively. The lock is released when all
// descriptors of this open file are closed. While another open file has the lock, Lock tries again at
// the given interval, which must be positive, because flock does not support a context. Before the
// first wait it calls onWait, which may be nil. If ctx is done while Lock waits, it returns ctx.Err().
// If no other open file has the lock, Lock does not check ctx. It returns the other errors of flock.
func Lock(ctx context.Context, fd int, interval time.Duration, onWait func()) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for isWaiting := false; ; isWaiting = true {
		if err := tryLock(fd); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if !isWaiting && onWait != nil {
			onWait()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// tryLock locks an open file without waiting. If a signal interrupts the call, it tries again.
func tryLock(fd int) error {
	for {
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
