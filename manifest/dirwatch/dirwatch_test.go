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
			t.Errorf("Watch with limit %v: got error %v, want one that contains %s", limit, err, want)
		}
		if w.Events() != nil || w.Errors() != nil {
			t.Error("Events and Errors without inotify: got a channel, want nil")
		}
		full = false
		if added, err := w.Watch([]string{dir}); err != nil || !added {
			t.Errorf("Watch with inotify: got added %v, %v, want true", added, err)
		}
	}
}

func TestWatch(t *testing.T) {
	var w Watcher
	defer w.Close()
	dir := filepath.Join(t.TempDir(), "dir")
	check := func(when string, want bool) {
		t.Helper()
		if added, err := w.Watch([]string{dir}); err != nil || added != want {
			t.Errorf("Watch, directory %s: got added %v, %v, want %v", when, added, err, want)
		}
	}
	event := func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if e := <-w.Events(); e.Name != filepath.Join(dir, "file") {
			t.Errorf("event: got %v, want one for the file", e)
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
