package inotify

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestWatcher_ErrorNotReceived renames and removes a watched directory before the events are read, which
// causes an error. The Watcher must report the rename although nothing receives the error, and Remove must
// not wait for the error.
func TestWatcher_ErrorNotReceived(t *testing.T) {
	w, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	parent := t.TempDir()
	dir, renamed := filepath.Join(parent, "dir"), filepath.Join(parent, "renamed")
	if err := errors.Join(os.Mkdir(dir, 0o755), w.Add(dir), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.Rename(dir, renamed), os.RemoveAll(renamed)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.After(5 * time.Minute); ; {
		select {
		case e := <-w.Events:
			if e.Name == dir && e.Has(fsnotify.Rename) {
				if err := w.Remove(dir); !errors.Is(err, fsnotify.ErrNonExistentWatch) {
					t.Errorf("Remove of the removed directory: got error %v, want %v", err, fsnotify.ErrNonExistentWatch)
				}
				return
			}
		case <-deadline:
			t.Fatal("got no event for the renamed directory within 5m, want one although no error was received")
		}
	}
}

// TestWatcher_Close checks that Errors is closed after Close, and that New returns the error of open.
func TestWatcher_Close(t *testing.T) {
	w, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err, ok := <-w.Errors; ok {
		t.Errorf("Errors after Close: got %v, want a closed channel", err)
	}
	if _, err := New(func() (*fsnotify.Watcher, error) { return nil, os.ErrPermission }); !errors.Is(err, os.ErrPermission) {
		t.Errorf("New: got error %v, want %v", err, os.ErrPermission)
	}
}
