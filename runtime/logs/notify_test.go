package logs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fsnotify/fsnotify"

	"podd/runtime/safepath"
)

// countInotify returns the numbers of inotify instances and watches of this process.
func countInotify(t *testing.T) (instances, watches int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	ok(t, err)
	for _, fd := range all {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); !strings.Contains(to, "inotify") {
			continue
		}
		instances++
		info, err := os.ReadFile("/proc/self/fdinfo/" + fd.Name())
		ok(t, err)
		watches += strings.Count(string(info), "inotify wd:")
	}
	return instances, watches
}

// A readerGroup is a group of readers that follow logs until leave is called.
type readerGroup struct {
	cancel context.CancelFunc
	got    []*output
	waits  []chan struct{} // closed when a reader has read everything and waits
	wait   sync.WaitGroup
}

// startReaders starts several readers for each directory in dirs, and returns when all of them
// wait. The parameter each is the number of readers for one directory.
func startReaders(n *Notifier, each int, dirs ...string) *readerGroup {
	ctx, cancel := context.WithCancel(context.Background())
	c := &readerGroup{cancel: cancel}
	for i := range each * len(dirs) {
		out, waits := &output{}, make(chan struct{})
		c.got, c.waits = append(c.got, out), append(c.waits, waits)
		idle := 0
		o := Options{Dir: dirs[i%len(dirs)], Container: "c", Follow: true, Notifier: n, OnIdle: func() error {
			if idle++; idle == 2 { // the reader waits for events now
				close(waits)
			}
			return nil
		}}
		c.wait.Go(func() { _ = Read(ctx, o, out.emit) })
	}
	for _, waits := range c.waits {
		<-waits
	}
	return c
}

func (c *readerGroup) leave() { c.cancel(); c.wait.Wait() }

// TestNotifier_Shared checks that all readers share one inotify instance with one watch for each directory,
// and that the notifier closes the instance when the last reader leaves.
func TestNotifier_Shared(t *testing.T) {
	before, _ := countInotify(t)
	var dirs []string
	for range 20 {
		dir, l := newLog(t)
		ok(t, l.start(), l.write(logLine(Stdout, false, "one")))
		dirs = append(dirs, dir)
	}
	n := &Notifier{}
	some, others := startReaders(n, 40, dirs...), startReaders(n, 10, dirs...)
	if instances, watches := countInotify(t); instances != before+1 || watches != len(dirs) {
		t.Errorf("with 1000 readers: got %d inotify instances and %d watches; want 1 instance and %d watches", instances-before, watches, len(dirs))
	}
	some.leave()
	if instances, watches := countInotify(t); instances != before+1 || watches != len(dirs) {
		t.Errorf("with 200 remaining readers: got %d inotify instances and %d watches; want 1 instance and %d watches", instances-before, watches, len(dirs))
	}
	others.leave()
	if instances, watches := countInotify(t); instances != before || watches != 0 {
		t.Errorf("after the last reader has left: got %d inotify instances and %d watches; want none of both", instances-before, watches)
	}
	for _, out := range append(some.got, others.got...) {
		if len(out.lines) != 1 {
			t.Fatalf("lines of a reader: got %q, want one", out.lines)
		}
	}
}

// TestFollow_WithoutInotify checks that readers follow logs by polling if inotify is unavailable, and that
// the notifier logs this once.
func TestFollow_WithoutInotify(t *testing.T) {
	dir, l := newLog(t)
	ok(t, l.start(), l.write(logLine(Stdout, false, "one")))
	var log strings.Builder
	n := &Notifier{
		Log:        slog.New(slog.NewTextHandler(&log, nil)),
		newWatcher: func() (*fsnotify.Watcher, error) { return nil, errors.New("too many open files") },
	}
	a, b := follow(t, Options{Dir: dir, Notifier: n}), follow(t, Options{Dir: dir, Notifier: n})
	a.want("0 stdout one")
	b.want("0 stdout one")
	ok(t, l.write(logLine(Stdout, false, "two")), l.rotate(""), l.write(logLine(Stdout, false, "three")))
	a.want("0 stdout two", "0 stdout three")
	b.want("0 stdout two", "0 stdout three")
	ok(t, l.f.Close())
	l.f = nil
	a.finish(l)
	b.finish(l)
	if strings.Count(log.String(), "too many open files") != 1 {
		t.Errorf("got log %s, want \"too many open files\" once", log.String())
	}
}

// TestWait_InotifyAgain checks that a reader gets events as soon as inotify is available again, and that
// the notifier logs repeated failures once.
func TestWait_InotifyAgain(t *testing.T) {
	d, err := safepath.Open(t.TempDir())
	ok(t, err)
	defer d.Close()
	var log strings.Builder
	n := &Notifier{Log: slog.New(slog.NewTextHandler(&log, nil))}
	for range 2 {
		n.newWatcher = func() (*fsnotify.Watcher, error) { return nil, errors.New("too many open files") }
		w := &waiter{notifier: n}
		for !w.isCounted || !w.isWatching() {
			_, _, err := w.wait(t.Context(), d, nil)
			ok(t, err)
			n.newWatcher = nil
		}
		w.close()
	}
	if strings.Count(log.String(), "too many open files") != 1 {
		t.Errorf("got log %s, want \"too many open files\" once", log.String())
	}
}

// newWaiter returns a waiter that waits for changes in a directory.
func newWaiter(t *testing.T, n *Notifier, dir string) *waiter {
	t.Helper()
	d, err := safepath.Open(dir)
	ok(t, err)
	w := &waiter{notifier: n}
	w.register()
	n.watchFor(w, d)
	ok(t, d.Close())
	t.Cleanup(w.close)
	return w
}

// TestNotifier_Wakes checks that an event wakes all readers of its directory, and that a loss of events
// wakes the readers of all directories.
func TestNotifier_Wakes(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	n := &Notifier{}
	a, b, c := newWaiter(t, n, dir), newWaiter(t, n, dir), newWaiter(t, n, other)
	checkWakes := func(relist bool, all ...*waiter) {
		t.Helper()
		for _, w := range all {
			<-w.changed
			if got := w.takeRelist(); got != relist {
				t.Errorf("waiter that was woken: got relist %t, want %t", got, relist)
			}
		}
	}
	f, err := os.Create(filepath.Join(dir, "0.log"))
	ok(t, err)
	defer f.Close()
	checkWakes(true, a, b)
	_, err = f.WriteString("x")
	ok(t, err)
	checkWakes(false, a, b)
	ok(t, os.Remove(filepath.Join(dir, "0.log")))
	checkWakes(true, a, b)
	n.watcher.Watcher.Errors <- fsnotify.ErrEventOverflow
	checkWakes(true, a, b, c)
	ok(t, os.Rename(other, other+".moved"))
	checkWakes(true, c)
	ok(t, os.WriteFile(filepath.Join(other+".moved", "0.log"), nil, 0o600))
	checkWakes(true, c)
	ok(t, os.RemoveAll(other+".moved"))
	checkWakes(true, c)
}

// TestNotifier_EarlierInstance checks that a late event of a closed inotify instance does not remove a watch
// of the current instance.
func TestNotifier_EarlierInstance(t *testing.T) {
	n, dir := &Notifier{}, t.TempDir()
	first, err := safepath.Open(dir)
	ok(t, err)
	defer first.Close()
	w := &waiter{notifier: n}
	w.register()
	n.watchFor(w, first)
	old := n.watcher
	w.close()
	w = newWaiter(t, n, dir)
	n.handleEvent(old, fsnotify.Event{Name: w.dir.path, Op: fsnotify.Rename})
	if !w.isWatching() {
		t.Error("watch after an event of a closed inotify instance: got it removed, want it kept")
	}
}

// TestFollow_ManyReaders checks that each reader gets every line once while other readers
// start and stop.
func TestFollow_ManyReaders(t *testing.T) {
	dir, l := newLog(t)
	ok(t, l.start())
	n := &Notifier{}
	const stay, lines = 30, 200
	var followers []*following
	for range stay {
		followers = append(followers, follow(t, Options{Dir: dir, Notifier: n}))
	}
	var passing, reading sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		passing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					startReaders(n, 3, dir).leave()
				}
			}
		})
	}
	for i, f := range followers {
		reading.Go(func() {
			seen := make([]int, lines)
			for range lines {
				var at int
				if _, err := fmt.Sscanf(<-f.got, "0 stdout line %d", &at); err != nil {
					t.Errorf("reader %d: parsing a line as \"0 stdout line N\": %v", i, err)
				}
				seen[at]++
			}
			for at, times := range seen {
				if times != 1 {
					t.Errorf("reader %d: got \"line %d\" %d times, want it once", i, at, times)
				}
			}
		})
	}
	for i := range lines {
		line := logLine(Stdout, false, fmt.Sprintf("line %d", i))
		if i%7 == 6 {
			ok(t, l.rotate(line), l.compress())
		} else {
			ok(t, l.write(line))
		}
	}
	reading.Wait()
	close(stop)
	passing.Wait()
	l.f.Close()
	for _, f := range followers {
		close(f.done)
		f.wantEnd()
	}
	if n.watcher != nil || len(n.dirs) > 0 || n.readerCount != 0 {
		t.Errorf("notifier after the last reader has left: got %d directories, %d readers open instance: %t; want no directories, no readers, open instance: false", len(n.dirs), n.readerCount, n.watcher != nil)
	}
}
