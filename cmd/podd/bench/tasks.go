package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// tasksDir is the directory in which containerd has a directory for each task. containerd creates
// the directory of a task before it starts the task, and removes the directory when the task is
// deleted. A sandbox has a task, too.
const tasksDir = "stack/run/io.containerd.runtime.v2.task/k8s.io"

// A dirDrainWaiter uses inotify to wait until a directory is empty.
type dirDrainWaiter struct {
	dir     string
	watcher *fsnotify.Watcher
}

// taskWatcher waits until containerd has no task.
type taskWatcher struct{ dirDrainWaiter }

// newTaskWatcher watches the directory of tasks.
func newTaskWatcher(dir string) (*taskWatcher, error) {
	e, err := newDirDrainWaiter(dir)
	return &taskWatcher{e}, err
}

// newDirDrainWaiter creates dir if necessary and watches it.
func newDirDrainWaiter(dir string) (dirDrainWaiter, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return dirDrainWaiter{}, err
	}
	w, err := fsnotify.NewBufferedWatcher(4096)
	if err != nil {
		return dirDrainWaiter{}, fmt.Errorf("watching %s: %w", dir, err)
	}
	if err := w.Add(dir); err != nil {
		w.Close()
		return dirDrainWaiter{}, fmt.Errorf("watching %s: %w", dir, err)
	}
	return dirDrainWaiter{dir, w}, nil
}

func (e *dirDrainWaiter) close() error { return e.watcher.Close() }

// waitEmpty waits until the directory is empty, and returns the time of that observation. It reads
// the directory once per batch of changes.
func (e *dirDrainWaiter) waitEmpty(ctx context.Context) (time.Time, error) {
	for {
		for isDrained := false; !isDrained; {
			select {
			case <-e.watcher.Events:
			default:
				isDrained = true
			}
		}
		now := time.Now()
		entries, err := os.ReadDir(e.dir)
		if err != nil {
			return now, err
		}
		if len(entries) == 0 {
			return now, nil
		}
		select {
		case <-e.watcher.Events:
		case err := <-e.watcher.Errors:
			return now, fmt.Errorf("watching %s: %w", e.dir, err)
		case <-ctx.Done():
			return now, fmt.Errorf("waiting until %s is empty: %d entries left: %w", e.dir, len(entries), ctx.Err())
		}
	}
}

// readPID returns the process ID of a container's first process.
func (t *taskWatcher) readPID(id string) (int, error) {
	text, err := os.ReadFile(filepath.Join(t.dir, id, "init.pid"))
	if err != nil {
		return 0, fmt.Errorf("reading the PID of container %s: %w", id, err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
