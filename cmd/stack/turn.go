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

// A turn is a lock on a place. Its file contains the PID of the holder. The lock is released
// when the process exits.
type turn struct{ f *os.File }

// errTaken is returned if another command holds the lock.
var errTaken = errors.New("another make run is running here")

// take acquires the lock, or returns errTaken.
func (p place) take() (*turn, error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating %s: %w", p.dir, err)
	}
	f, err := os.OpenFile(p.turnFile(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errTaken
		}
		return nil, fmt.Errorf("locking the directory: %w", err)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteString(strconv.Itoa(os.Getpid()))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking the directory: %w", err)
	}
	return &turn{f}, nil
}

func (t *turn) Close() error { return t.f.Close() }

func (p place) turnFile() string { return filepath.Join(p.dir, "turn") }

// holder returns the PID of the process that holds the lock.
func (p place) holder() (int, error) {
	text, err := os.ReadFile(p.turnFile())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// takeOver stops the command that holds the lock and acquires it.
func (p place) takeOver(ctx context.Context) (*turn, error) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for signaled := false; ; {
		t, err := p.take()
		if !errors.Is(err, errTaken) {
			return t, err
		}
		if !signaled {
			pid, err := p.holder()
			if err != nil {
				return nil, fmt.Errorf("stopping the make run that is running here: %w", err)
			}
			// The process holds the lock, so its PID was not reused.
			if err := unix.Kill(pid, unix.SIGTERM); err != nil {
				return nil, fmt.Errorf("stopping process %d, the make run that is running here: %w", pid, err)
			}
			signaled = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-again.C:
		}
	}
}
