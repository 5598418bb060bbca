package logs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"pgregory.net/rapid"
)

// A runtimeLog writes and rotates the log of a container as a runtime does.
type runtimeLog struct {
	dir     string // the container's log directory
	f       *os.File
	attempt int
	rotated []string // names of rotated files, oldest first
}

func (l *runtimeLog) path(suffix string) string {
	return filepath.Join(l.dir, fmt.Sprintf("%d.log%s", l.attempt, suffix))
}

// open creates a new file for writing and returns the previous file.
func (l *runtimeLog) open() (old *os.File, err error) {
	old = l.f
	l.f, err = os.OpenFile(l.path(""), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return old, err
}

func (l *runtimeLog) write(text string) error {
	_, err := l.f.WriteString(text)
	return err
}

// rotate renames the current file and opens a new one. Then it writes the text in the parameter
// late to the old file, because a runtime may do so too.
func (l *runtimeLog) rotate(late string) error {
	name := l.path(fmt.Sprintf(".20250101-%06d", len(l.rotated)))
	if err := os.Rename(l.path(""), name); err != nil {
		return err
	}
	l.rotated = append(l.rotated, name)
	old, err := l.open()
	if err != nil {
		return err
	}
	_, err = old.WriteString(late)
	return errors.Join(err, old.Close())
}

// compress compresses all rotated files except the newest.
func (l *runtimeLog) compress() error {
	for _, name := range l.rotated[:max(len(l.rotated)-1, 0)] {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // already compressed
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(text)
		z.Close()
		if err := errors.Join(
			os.WriteFile(name+".tmp", b.Bytes(), 0o644),
			os.Rename(name+".tmp", name+".gz"),
			os.Remove(name),
		); err != nil {
			return err
		}
	}
	return nil
}

func (l *runtimeLog) restart() error {
	l.attempt++
	old, err := l.open()
	if old != nil {
		old.Close()
	}
	return err
}

// A following is a call of Read in its own goroutine that follows a log.
type following struct {
	t     *testing.T
	got   chan string
	idle  chan struct{} // closed when Read waits for the first time
	done  chan struct{}
	ended chan error
}

func follow(t *testing.T, o Options) *following {
	t.Helper()
	f := &following{t: t, got: make(chan string), idle: make(chan struct{}), done: make(chan struct{}), ended: make(chan error, 1)}
	o.Container, o.Follow, o.HasExited = "c", true, ExitedWhenClosed(f.done)
	o.OnIdle = sync.OnceValue(func() error { close(f.idle); return nil })
	ctx, cancel := context.WithCancel(context.Background())
	finished := make(chan struct{})
	t.Cleanup(func() { cancel(); <-finished })
	go func() {
		defer close(finished)
		var out output
		f.ended <- Read(ctx, o, func(e Entry) error {
			out.emit(e)
			select {
			case f.got <- out.lines[len(out.lines)-1]:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return f
}

// want fails the test unless the next lines that Read emits are lines.
func (f *following) want(lines ...string) {
	f.t.Helper()
	for _, want := range lines {
		select {
		case got := <-f.got:
			if got != want {
				f.t.Fatalf("next line: got %q, want %q", got, want)
			}
		case err := <-f.ended:
			f.t.Fatalf("next line: got the end of Read with error %v, want %q", err, want)
		}
	}
}

// wantBoth checks two lines in any order. A late line of a rotated file may come after the
// first lines of the next file.
func (f *following) wantBoth(one, other string) {
	f.t.Helper()
	got := []string{<-f.got, <-f.got}
	if !slices.Equal(got, []string{one, other}) && !slices.Equal(got, []string{other, one}) {
		f.t.Fatalf("next two lines: got %q, want %q and %q in any order", got, one, other)
	}
}

// finish closes the log and reports the exit of the container. The test fails unless Read then emits lines
// and returns.
func (f *following) finish(l *runtimeLog, lines ...string) {
	f.t.Helper()
	if l.f != nil {
		l.f.Close()
	}
	close(f.done)
	f.wantEnd(lines...)
}

// wantEnd fails the test unless Read emits lines and then returns without an error.
func (f *following) wantEnd(lines ...string) {
	f.t.Helper()
	f.want(lines...)
	select {
	case got := <-f.got:
		f.t.Fatalf("after the last line: got the line %q, want the end of Read", got)
	case err := <-f.ended:
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

// ok fails the test if one of errs is not nil.
func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func newLog(t *testing.T) (dir string, l *runtimeLog) {
	t.Helper()
	dir = logDir(t, nil)
	l = &runtimeLog{dir: filepath.Join(dir, "c")}
	t.Cleanup(func() {
		if l.f != nil {
			l.f.Close()
		}
	})
	return dir, l
}

func (l *runtimeLog) start() error {
	_, err := l.open()
	return err
}

func TestFollow_BeforeCreation(t *testing.T) {
	dir, l := newLog(t)
	ok(t, os.RemoveAll(dir))
	f := follow(t, Options{Dir: dir, TailLines: -1}) // the log does not exist yet
	<-f.idle
	ok(t, os.MkdirAll(l.dir, 0o755), l.start(), l.write(logLine(Stdout, false, "one")))
	f.want("0 stdout one")
	two := logLine(Stderr, false, "two")
	ok(t, l.write(two[:10]), l.write(two[10:30]))
	ok(t, l.write(two[30:]), l.write(logLine(Stdout, true, "thr")))
	f.want("0 stderr two", "0 stdout thr+")
	ok(t, l.write(logLine(Stdout, false, "ee")+"2025-01-02T15:04:05Z stdout F cut"))
	f.want("0 stdout ee")
	f.finish(l, "0 stdout cut+")
}

func TestFollow_NoLog(t *testing.T) {
	dir, l := newLog(t)
	follow(t, Options{Dir: dir}).finish(l)
}

func TestFollow_Tail(t *testing.T) {
	dir, l := newLog(t)
	half := logLine(Stdout, false, "three")
	ok(t, l.start(), l.write(logLine(Stdout, false, "one")+logLine(Stdout, false, "two")+half[:len(half)/2]))
	f := follow(t, Options{Dir: dir, TailLines: 1})
	f.want("0 stdout two")
	ok(t, l.write(half[len(half)/2:]), l.write(logLine(Stderr, false, "four")))
	f.want("0 stdout three", "0 stderr four")
	f.finish(l)
}

func TestFollow_Rotation(t *testing.T) {
	dir, l := newLog(t)
	ok(t, l.start(), l.write(logLine(Stdout, false, "one")))
	f := follow(t, Options{Dir: dir})
	f.want("0 stdout one")
	ok(t, l.rotate(logLine(Stdout, false, "two")), l.write(logLine(Stdout, false, "three")))
	f.wantBoth("0 stdout two", "0 stdout three")
	ok(t, l.rotate(""), l.compress(), l.write(logLine(Stdout, false, "four")))
	f.want("0 stdout four")
	f.finish(l)
}

// TestFollow_SlowReader checks that a reader gets every line if the log is rotated several times while the
// reader does not read.
func TestFollow_SlowReader(t *testing.T) {
	dir, l := newLog(t)
	ok(t, l.start(), l.write(logLine(Stdout, false, "0")))
	f := follow(t, Options{Dir: dir}) // its emit function blocks
	var want []string
	want = append(want, "0 stdout 0")
	for i := range 5 {
		text := fmt.Sprint(i + 1)
		ok(t, l.write(logLine(Stdout, false, text)), l.rotate(logLine(Stderr, false, text)), l.compress())
		want = append(want, "0 stdout "+text, "0 stderr "+text)
	}
	f.want(want...)
	f.finish(l)
}

func TestFollow_RemovedFile(t *testing.T) {
	dir, l := newLog(t)
	ok(t, l.start(), l.write(logLine(Stdout, false, "one")))
	f := follow(t, Options{Dir: dir})
	f.want("0 stdout one")
	ok(t, os.Remove(l.path("")), l.write(logLine(Stdout, false, "after its removal")))
	f.want("0 stdout after its removal")
	old, err := l.open()
	ok(t, err, old.Close(), l.write(logLine(Stdout, false, "two")))
	f.want("0 stdout two")
	f.finish(l)
}

func TestFollow_TruncatedFile(t *testing.T) {
	dir, l := newLog(t)
	ok(t, l.start(), l.write(logLine(Stdout, false, "a long line to begin with")))
	f := follow(t, Options{Dir: dir})
	f.want("0 stdout a long line to begin with")
	ok(t, os.Truncate(l.path(""), 0), l.write(logLine(Stdout, false, "after truncation")))
	f.want("0 stdout after truncation")
	f.finish(l)
}

func TestFollow_Restarts(t *testing.T) {
	dir, l := newLog(t)
	ok(t, l.start(), l.write(logLine(Stdout, true, "no newline")))
	all, one := follow(t, Options{Dir: dir, LaterAttempts: true}), follow(t, Options{Dir: dir})
	for _, f := range []*following{all, one} {
		f.want("0 stdout no newline+")
	}
	ok(t, l.restart(), l.write(logLine(Stdout, false, "again")))
	all.want("1 stdout again")
	ok(t, l.restart(), l.restart(), l.write(logLine(Stdout, false, "and again")))
	all.want("3 stdout and again")
	all.finish(l)
	one.finish(l)
}

// TestFollow_Ended checks that the reader continues after the exit of the container until the runtime has
// closed all files. The runtime writes late lines to the file of an earlier attempt and to a new file.
func TestFollow_Ended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, l := newLog(t)
		ok(t, l.start(), l.write(logLine(Stdout, false, "one")))
		first := l.f
		l.f = nil
		ok(t, l.restart(), l.write(logLine(Stdout, false, "again")))
		// The fake clock does not advance while a goroutine waits for inotify.
		n := &Notifier{
			Log:        slog.New(slog.DiscardHandler),
			newWatcher: func() (*fsnotify.Watcher, error) { return nil, errors.New("too many open files") },
		}
		f := follow(t, Options{Dir: dir, LaterAttempts: true, Attempt: number(0), Notifier: n})
		f.want("0 stdout one", "1 stdout again")
		close(f.done)
		checkContinues := func() {
			t.Helper()
			select {
			case err := <-f.ended:
				t.Fatalf("Read: got its end with error %v while the runtime has a log file open, want it to continue", err)
			case <-time.After(2 * time.Second):
			}
		}
		checkContinues()
		_, err := first.WriteString(logLine(Stdout, false, "late"))
		ok(t, err)
		f.want("0 stdout late")
		ok(t, first.Close())
		checkContinues()
		ok(t, l.rotate(""), l.write(logLine(Stdout, false, "last line")))
		f.want("1 stdout last line")
		checkContinues()
		ok(t, l.f.Close())
		f.wantEnd()
	})
}

// TestFollow_KeptOpen checks that a reader waits only for a limited time after the exit of the container if
// a process keeps the log open.
func TestFollow_KeptOpen(t *testing.T) {
	dir, l := newLog(t)
	ok(t, l.start(), l.write(logLine(Stdout, false, "one")))
	done := make(chan struct{})
	close(done)
	var out output
	r := &reader{o: Options{Dir: dir, Container: "c", Follow: true, HasExited: ExitedWhenClosed(done)}, emit: out.emit, maxWriteAfterExit: 30 * time.Millisecond}
	defer r.close()
	ok(t, r.run(t.Context()))
	if !slices.Equal(out.lines, []string{"0 stdout one"}) {
		t.Errorf("got the lines %q, want only %q", out.lines, "0 stdout one")
	}
}

func TestFollow_Canceled(t *testing.T) {
	dir, l := newLog(t)
	ok(t, l.start(), l.write(logLine(Stdout, false, "one")))
	ctx, cancel := context.WithCancel(t.Context())
	idle := 0
	err := Read(ctx, Options{Dir: dir, Container: "c", Follow: true, OnIdle: func() error {
		idle++
		cancel()
		return nil
	}}, func(Entry) error { return nil })
	if !errors.Is(err, context.Canceled) || idle == 0 {
		t.Errorf("Read after a cancel: got error %v and %d calls of OnIdle; want Canceled and at least one call", err, idle)
	}
}

// TestFollow_Complete checks with random writes, rotations and restarts that every byte is
// emitted exactly once.
func TestFollow_Complete(t *testing.T) {
	dir := logDir(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		l := &runtimeLog{dir: filepath.Join(dir, "c")}
		if err := errors.Join(os.RemoveAll(l.dir), os.MkdirAll(l.dir, 0o755), l.start()); err != nil {
			t.Fatal(err)
		}
		defer func() { l.f.Close() }()
		var out output
		done, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- Read(context.Background(), Options{Dir: dir, Container: "c", Follow: true, LaterAttempts: true, Attempt: number(0), HasExited: ExitedWhenClosed(done)}, out.emit)
		}()
		var wrote strings.Builder
		line := func() string {
			text := fmt.Sprintf("%d ", wrote.Len()) + strings.Repeat("y", rapid.IntRange(0, 2000).Draw(t, "length"))
			wrote.WriteString(text + "\n")
			return logLine(Stdout, false, text)
		}
		var err error
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"write", "write", "write", "rotate", "compress", "restart"}).Draw(t, "step") {
			case "write":
				err = l.write(line())
			case "rotate":
				err = l.rotate(line())
			case "compress":
				err = l.compress()
			case "restart":
				err = l.restart()
				l.rotated = nil
			}
			if err != nil {
				break
			}
		}
		l.f.Close()
		close(done)
		if err := errors.Join(err, <-ended); err != nil {
			t.Fatal(err)
		}
		if out.bytes == nil {
			out.emit(Entry{Stream: Stdout, Partial: true})
		}
		// The lines are sorted for the comparison, because Read may emit the last lines of a rotated file late.
		got, want := strings.Split(out.bytes[Stdout].String(), "\n"), strings.Split(wrote.String(), "\n")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("got %d lines that differ from the written ones, want the %d written lines", len(got), len(want))
		}
		if n := out.bytes[""].Len(); n > 0 {
			t.Fatalf("got malformed text %q, want none", out.bytes[""].String())
		}
	})
}

// TestRead_LateLines checks that the lines that the runtime writes to a rotated file, after it has
// written to the new file, are emitted before the lines of the new file.
func TestRead_LateLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := logDir(t, nil)
		l := &runtimeLog{dir: filepath.Join(dir, "c")}
		line := func(text string) string { return logLine(Stdout, false, text) }
		if _, err := l.open(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.write(line("one")), os.Rename(l.path(""), l.path(".20250101-000000"))); err != nil {
			t.Fatal(err)
		}
		old, err := l.open()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.write(line("three")); err != nil {
			t.Fatal(err)
		}
		var late sync.WaitGroup
		defer late.Wait()
		var out output
		err = Read(t.Context(), Options{Dir: dir, Container: "c"}, func(e Entry) error {
			if string(e.Text) == "one" {
				late.Go(func() {
					time.Sleep(maxWriteAfterRotation / 2)
					if _, err := old.WriteString(line("two")); err != nil {
						t.Error(err)
					}
					old.Close()
				})
			}
			return out.emit(e)
		})
		if got := out.bytes[Stdout].String(); err != nil || got != "one\ntwo\nthree\n" {
			t.Errorf("got %q, error %v; want the lines in the order %q", got, err, "one\ntwo\nthree\n")
		}
	})
}
