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

// taskDirectories is where a stack's containerd has a directory for each task,
// of sandboxes too, from before it starts until it is deleted.
const taskDirectories = "stack/run/io.containerd.runtime.v2.task/k8s.io"

// emptiness waits until a directory has no entries, by inotify.
type emptiness struct {
	dir     string
	watcher *fsnotify.Watcher
}

// tasks are containerd's.
type tasks struct{ emptiness }

func newTasks(dir string) (*tasks, error) {
	e, err := watchEmptiness(dir)
	return &tasks{e}, err
}

func watchEmptiness(dir string) (emptiness, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return emptiness{}, err
	}
	w, err := fsnotify.NewBufferedWatcher(4096)
	if err != nil {
		return emptiness{}, fmt.Errorf("watching %s: %w", dir, err)
	}
	if err := w.Add(dir); err != nil {
		w.Close()
		return emptiness{}, fmt.Errorf("watching %s: %w", dir, err)
	}
	return emptiness{dir, w}, nil
}

func (e *emptiness) close() error { return e.watcher.Close() }

// wait returns when the directory became empty, which it looks at once for
// every batch of changes in it.
func (e *emptiness) wait(ctx context.Context) (time.Time, error) {
	for {
		for drained := false; !drained; {
			select {
			case <-e.watcher.Events:
			default:
				drained = true
			}
		}
		now := time.Now()
		left, err := os.ReadDir(e.dir)
		if err != nil {
			return now, err
		}
		if len(left) == 0 {
			return now, nil
		}
		select {
		case <-e.watcher.Events:
		case err := <-e.watcher.Errors:
			return now, fmt.Errorf("watching %s: %w", e.dir, err)
		case <-ctx.Done():
			return now, fmt.Errorf("waiting until %s is empty, %d are left: %w", e.dir, len(left), ctx.Err())
		}
	}
}

// pid is the first process of a container.
func (t *tasks) pid(id string) (int, error) {
	text, err := os.ReadFile(filepath.Join(t.dir, id, "init.pid"))
	if err != nil {
		return 0, fmt.Errorf("finding the process of container %s: %w", id, err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
