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

// inotify counts this process' instances and what they watch.
func inotify(t *testing.T) (instances, watches int) {
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

// crowd follows logs until leave, which tells what each got.
type crowd struct {
	cancel context.CancelFunc
	got    []*output
	heard  []chan struct{} // closed when one has read all there was
	wait   sync.WaitGroup
}

func follows(n *Notifier, each int, dirs ...string) *crowd {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{cancel: cancel}
	for i := range each * len(dirs) {
		out, heard := &output{}, make(chan struct{})
		c.got, c.heard = append(c.got, out), append(c.heard, heard)
		idle := 0
		o := Options{Dir: dirs[i%len(dirs)], Container: "c", Follow: true, Notifier: n, Idle: func() error {
			if idle++; idle == 2 { // it waits for events by now
				close(heard)
			}
			return nil
		}}
		c.wait.Go(func() { _ = Read(ctx, o, out.emit) })
	}
	for _, heard := range c.heard {
		<-heard
	}
	return c
}

func (c *crowd) leave() { c.cancel(); c.wait.Wait() }

// TestFollowersShareInotify: however many follow, there is one instance, with a
// watch for each directory, and nothing is left when they have gone.
func TestFollowersShareInotify(t *testing.T) {
	before, _ := inotify(t)
	var dirs []string
	for range 20 {
		dir, l := newLog(t)
		ok(t, l.start(), l.write(cri(Stdout, false, "one")))
		dirs = append(dirs, dir)
	}
	n := &Notifier{}
	some, others := follows(n, 40, dirs...), follows(n, 10, dirs...)
	if instances, watches := inotify(t); instances != before+1 || watches != len(dirs) {
		t.Errorf("1000 followers have %d instances and %d watches, want 1 and %d", instances-before, watches, len(dirs))
	}
	some.leave()
	if instances, watches := inotify(t); instances != before+1 || watches != len(dirs) {
		t.Errorf("those who stay have %d instances and %d watches, want 1 and %d", instances-before, watches, len(dirs))
	}
	others.leave()
	if instances, watches := inotify(t); instances != before || watches != 0 {
		t.Errorf("left: %d instances and %d watches", instances-before, watches)
	}
	for _, out := range append(some.got, others.got...) {
		if len(out.lines) != 1 {
			t.Fatalf("got %q", out.lines)
		}
	}
}

// TestFollowWithoutInotify: where there is none logs are read all the same, and
// it is said once.
func TestFollowWithoutInotify(t *testing.T) {
	dir, l := newLog(t)
	ok(t, l.start(), l.write(cri(Stdout, false, "one")))
	var said strings.Builder
	n := &Notifier{
		Log:  slog.New(slog.NewTextHandler(&said, nil)),
		open: func() (*fsnotify.Watcher, error) { return nil, errors.New("too many open files") },
	}
	a, b := follow(t, Options{Dir: dir, Notifier: n}), follow(t, Options{Dir: dir, Notifier: n})
	a.want("0 stdout one")
	b.want("0 stdout one")
	ok(t, l.write(cri(Stdout, false, "two")), l.rotate(""), l.write(cri(Stdout, false, "three")))
	a.want("0 stdout two", "0 stdout three")
	b.want("0 stdout two", "0 stdout three")
	ok(t, l.f.Close())
	l.f = nil
	a.end(l)
	b.end(l)
	if strings.Count(said.String(), "too many open files") != 1 {
		t.Errorf("said %s", said.String())
	}
}

// TestFollowWithInotifyAgain: who could not have it for a moment has it later,
// and it is said once however often that happens.
func TestFollowWithInotifyAgain(t *testing.T) {
	d, err := safepath.Open(t.TempDir())
	ok(t, err)
	defer d.Close()
	var said strings.Builder
	n := &Notifier{Log: slog.New(slog.NewTextHandler(&said, nil))}
	for range 2 {
		n.open = func() (*fsnotify.Watcher, error) { return nil, errors.New("too many open files") }
		w := &wake{of: n}
		for !w.counted || !w.joined() {
			_, _, err := w.wait(t.Context(), d, nil)
			ok(t, err)
			n.open = nil
		}
		w.close()
	}
	if strings.Count(said.String(), "too many open files") != 1 {
		t.Errorf("said %s", said.String())
	}
}

// waits is a wake that waits for a directory.
func waits(t *testing.T, n *Notifier, dir string) *wake {
	t.Helper()
	d, err := safepath.Open(dir)
	ok(t, err)
	w := &wake{of: n}
	w.begin()
	n.join(w, d)
	ok(t, d.Close())
	t.Cleanup(w.close)
	return w
}

// TestNotifierWakes: whoever waits for a directory hears of it, and all do when
// events were lost.
func TestNotifierWakes(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	n := &Notifier{}
	a, b, c := waits(t, n, dir), waits(t, n, dir), waits(t, n, other)
	heard := func(look bool, all ...*wake) {
		t.Helper()
		for _, w := range all {
			<-w.changed
			if got := w.looks(); got != look {
				t.Errorf("look is %v, want %v", got, look)
			}
		}
	}
	f, err := os.Create(filepath.Join(dir, "0.log"))
	ok(t, err)
	defer f.Close()
	heard(true, a, b)
	_, err = f.WriteString("x")
	ok(t, err)
	heard(false, a, b)
	ok(t, os.Remove(filepath.Join(dir, "0.log")))
	heard(true, a, b)
	n.fs.Errors <- fsnotify.ErrEventOverflow
	heard(true, a, b, c)
	ok(t, os.Rename(other, other+".moved"))
	heard(true, c)
	ok(t, os.WriteFile(filepath.Join(other+".moved", "0.log"), nil, 0o600))
	heard(true, c)
	ok(t, os.RemoveAll(other+".moved"))
	heard(true, c)
}

// TestLateEventsOfAnEarlierInstance: an event read before its instance was given
// back takes nobody's watch away.
func TestLateEventsOfAnEarlierInstance(t *testing.T) {
	n, dir := &Notifier{}, t.TempDir()
	first, err := safepath.Open(dir)
	ok(t, err)
	defer first.Close()
	w := &wake{of: n}
	w.begin()
	n.join(w, first)
	old := n.fs
	w.close()
	w = waits(t, n, dir)
	n.event(old, fsnotify.Event{Name: w.dir.path, Op: fsnotify.Rename})
	if !w.joined() {
		t.Error("the watch is gone")
	}
}

// TestManyFollowThroughRotation: those who stay get every line once, whoever
// else comes and leaves meanwhile.
func TestManyFollowThroughRotation(t *testing.T) {
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
					follows(n, 3, dir).leave()
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
					t.Errorf("follower %d: %v", i, err)
				}
				seen[at]++
			}
			for at, times := range seen {
				if times != 1 {
					t.Errorf("follower %d: line %d came %d times", i, at, times)
				}
			}
		})
	}
	for i := range lines {
		line := cri(Stdout, false, fmt.Sprintf("line %d", i))
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
	if n.fs != nil || len(n.dirs) > 0 || n.readers != 0 {
		t.Errorf("left: %d directories, %d readers", len(n.dirs), n.readers)
	}
}
