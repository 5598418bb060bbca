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
// the given interval, because flock does not support a context. Before the first wait it calls onWait,
// which may be nil. It returns ctx.Err() if ctx is done before it has the lock, and otherwise the error
// of flock.
func Lock(ctx context.Context, fd int, interval time.Duration, onWait func()) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for isWaiting := false; ; isWaiting = true {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
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
