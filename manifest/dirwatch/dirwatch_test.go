package dirwatch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

func TestWatch_LimitReached(t *testing.T) {
	for limit, want := range map[error]string{unix.EMFILE: "max_user_instances", unix.ENOSPC: "max_user_watches"} {
		full := true
		w := Watcher{New: func() (*fsnotify.Watcher, error) {
			if full {
				return nil, os.NewSyscallError("inotify", limit)
			}
			return fsnotify.NewWatcher()
		}}
		defer w.Close()
		dir := t.TempDir()
		if _, err := w.Watch([]string{dir}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want it to name %s", limit, err, want)
		}
		if w.Events() != nil || w.Errors() != nil {
			t.Error("without inotify a channel is ready")
		}
		full = false
		if fresh, err := w.Watch([]string{dir}); err != nil || !fresh {
			t.Errorf("with inotify: fresh %v, %v", fresh, err)
		}
	}
}

func TestWatch(t *testing.T) {
	var w Watcher
	defer w.Close()
	dir := filepath.Join(t.TempDir(), "dir")
	check := func(when string, want bool) {
		t.Helper()
		if fresh, err := w.Watch([]string{dir}); err != nil || fresh != want {
			t.Errorf("%s: fresh %v, %v; want %v", when, fresh, err, want)
		}
	}
	event := func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if e := <-w.Events(); e.Name != filepath.Join(dir, "file") {
			t.Errorf("got %v", e)
		}
	}
	check("missing", false)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	check("created", true)
	check("unchanged", false)
	event()
	if err := os.Rename(dir, dir+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	check("replaced", true)
	w.Close()
	check("after Close", true)
	event()
}
