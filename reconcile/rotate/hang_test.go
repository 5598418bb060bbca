package rotate

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A writer is a runtime that writes logs and does not respond for some containers.
type writer struct {
	root string

	mu    sync.Mutex      // guards all following fields
	hangs map[string]bool // by ID
	opens map[string]bool // by ID; opens the file before it hangs
	calls map[string]int
}

func (w *writer) path(id string) string { return filepath.Join(w.root, id, "0.log") }

func (w *writer) open(id string) error {
	f, err := os.OpenFile(w.path(id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = f.WriteString("new\n")
	f.Close()
	return err
}

func (w *writer) reopen(ctx context.Context, id string) error {
	w.mu.Lock()
	w.calls[id]++
	hangs, opens := w.hangs[id], w.opens[id]
	w.mu.Unlock()
	if !hangs || opens {
		if err := w.open(id); err != nil {
			return err
		}
	}
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (w *writer) names(t *testing.T, id string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.root, id))
	must(t, err)
	var names []string
	for _, e := range entries {
		name, isRotated := strings.CutPrefix(e.Name(), "0.log.")
		if isRotated {
			name = "rotated"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// TestRun_ReopenHangs checks that the logs of other containers are rotated while the runtime does
// not respond for two containers. Their logs are rotated when the runtime responds again.
func TestRun_ReopenHangs(t *testing.T) {
	root := t.TempDir()
	w := &writer{
		root: root, calls: map[string]int{},
		hangs: map[string]bool{"hangs": true, "late": true}, opens: map[string]bool{"late": true},
	}
	all := []Log{{Dir: "hangs", ID: "hangs"}, {Dir: "late", ID: "late"}, {Dir: "a", ID: "a"}, {Dir: "b", ID: "b"}}
	for _, l := range all {
		must(t, os.Mkdir(filepath.Join(root, l.Dir), 0o755))
		must(t, os.WriteFile(w.path(l.ID), bytes.Repeat([]byte("line\n"), maxSize), 0o640))
	}
	var logged bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{
			Root: root, MaxSize: maxSize, MaxFiles: maxFiles, Workers: 256, Logs: func() []Log { return all }, Reopen: w.reopen,
			Log: slog.New(slog.NewTextHandler(&logged, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() { result <- r.Run(ctx) }()
		checkNames := func(when string, want map[string]string) {
			t.Helper()
			synctest.Wait()
			for id, names := range want {
				if got := w.names(t, id); got != names {
					t.Errorf("%s: files of %s: got %q, want %q", when, id, got, names)
				}
			}
		}
		time.Sleep(5 * time.Second)
		checkNames("while two calls hang", map[string]string{"a": "0.log rotated", "b": "0.log rotated", "hangs": "rotated", "late": "0.log rotated"})
		time.Sleep(reopenTimeout)
		checkNames("after the deadline", map[string]string{"hangs": "0.log", "late": "0.log rotated"})
		if text, err := os.ReadFile(w.path("late")); err != nil || string(text) != "new\n" {
			t.Errorf("file that the runtime opened after the deadline: got %q, error %v; want \"new\\n\"", text, err)
		}
		w.mu.Lock()
		w.hangs = nil
		w.mu.Unlock()
		time.Sleep(time.Minute)
		checkNames("when the runtime responds", map[string]string{"hangs": "0.log rotated"})
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
	if !strings.Contains(logged.String(), "the runtime did not reopen the log within 30s") {
		t.Errorf("got log %q, want one about the timeout of the reopen", logged.String())
	}
}

// TestRun_CanceledDuringReopen checks that Run restores the name of a log before it returns, if its
// context is canceled during a reopen.
func TestRun_CanceledDuringReopen(t *testing.T) {
	root := t.TempDir()
	w := &writer{root: root, calls: map[string]int{}, hangs: map[string]bool{"hangs": true}}
	must(t, os.Mkdir(filepath.Join(root, "hangs"), 0o755))
	must(t, os.WriteFile(w.path("hangs"), make([]byte, 2*maxSize), 0o640))
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Root: root, MaxSize: maxSize, MaxFiles: maxFiles, Workers: 256, Logs: func() []Log { return []Log{{Dir: "hangs", ID: "hangs"}} }, Reopen: w.reopen})
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() { result <- r.Run(ctx) }()
		time.Sleep(5 * time.Second)
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
	if got := w.names(t, "hangs"); got != "0.log" {
		t.Errorf("got files %q, want 0.log", got)
	}
}

// TestRun_ListsOncePerSecond checks that Options.Logs is called at most once per second, even if
// many logs become due at different times.
func TestRun_ListsOncePerSecond(t *testing.T) {
	root := t.TempDir()
	var all []Log
	for i := range 50 {
		l := Log{Dir: fmt.Sprint(i), ID: fmt.Sprint(i)}
		all = append(all, l)
		must(t, os.Mkdir(filepath.Join(root, l.Dir), 0o755))
		must(t, os.WriteFile(filepath.Join(root, l.Dir, "0.log"), nil, 0o640))
	}
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		r := New(Options{Root: root, MaxSize: maxSize, MaxFiles: maxFiles, Workers: 256, Logs: func() []Log { calls++; return all }})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		result := make(chan error)
		go func() { result <- r.Run(ctx) }()
		time.Sleep(5 * time.Second)
		for i, l := range all { // each log grows at a different speed
			must(t, os.WriteFile(filepath.Join(root, l.Dir, "0.log"), make([]byte, 400+i), 0o640))
		}
		must(t, <-result)
		if calls > 31 {
			t.Errorf("got %d lists of the logs in 30 seconds, want at most 31", calls)
		}
	})
}
