package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A dirLock is a lock on a workDir. The lock file contains the process ID of the holder. The
// lock is released when the holder exits.
type dirLock struct{ f *os.File }

// errLocked is the error of lock if another command holds the lock.
var errLocked = errors.New("another \"make run\" uses this directory")

// lock acquires the lock on w. If another command holds the lock, it returns errLocked.
func (w workDir) lock() (*dirLock, error) {
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating %s: %w", w.dir, err)
	}
	f, err := os.OpenFile(w.lockFile(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", w.lockFile(), err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("locking %s: %w", w.lockFile(), err)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteString(strconv.Itoa(os.Getpid()))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", w.lockFile(), err)
	}
	return &dirLock{f}, nil
}

func (l *dirLock) Close() error { return l.f.Close() }

func (w workDir) lockFile() string { return filepath.Join(w.dir, "lock") }

// stopFile returns the path of a file that exists while make stop removes the pods.
func (w workDir) stopFile() string { return filepath.Join(w.dir, "stopping") }

// lockHolder returns the process ID of the holder of the lock.
func (w workDir) lockHolder() (int, error) {
	text, err := os.ReadFile(w.lockFile())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// stopAndLock stops the command that holds the lock, if there is one, and acquires the lock.
func (w workDir) stopAndLock(ctx context.Context) (*dirLock, error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for isSignaled := false; ; {
		t, err := w.lock()
		if !errors.Is(err, errLocked) {
			return t, err
		}
		if !isSignaled {
			pid, err := w.lockHolder()
			if err != nil {
				return nil, fmt.Errorf("stopping the \"make run\" that uses this directory: %w", err)
			}
			if err := os.WriteFile(w.stopFile(), nil, 0o600); err != nil {
				return nil, err
			}
			printStep("down", "stopping the podd of \"make run\"", 0)
			// No other process can have this ID, because the holder keeps the lock until it exits.
			if err := unix.Kill(pid, unix.SIGTERM); err != nil {
				return nil, fmt.Errorf("stopping process %d, the \"make run\" that uses this directory: %w", pid, err)
			}
			isSignaled = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}
