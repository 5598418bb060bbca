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

// A turn is a lock on a place. Its file contains the PID of the holder. It is released
// when the process ends.
type turn struct{ f *os.File }

// errTaken is returned if another command holds the lock.
var errTaken = errors.New("another make run works here")

// take acquires the lock, or returns errTaken.
func (p place) take() (*turn, error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making %s: %w", p.dir, err)
	}
	f, err := os.OpenFile(p.turnFile(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("taking the turn: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errTaken
		}
		return nil, fmt.Errorf("taking the turn: %w", err)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteString(strconv.Itoa(os.Getpid()))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("taking the turn: %w", err)
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
	for asked := false; ; {
		t, err := p.take()
		if !errors.Is(err, errTaken) {
			return t, err
		}
		if !asked {
			pid, err := p.holder()
			if err != nil {
				return nil, fmt.Errorf("ending the make run that works here: %w", err)
			}
			// It holds the lock, so the PID was not reused.
			if err := unix.Kill(pid, unix.SIGTERM); err != nil {
				return nil, fmt.Errorf("ending process %d, the make run that works here: %w", pid, err)
			}
			asked = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-again.C:
		}
	}
}
