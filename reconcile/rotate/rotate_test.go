package rotate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"podd/runtime/logs"
)

const (
	maxSize  = 1000
	maxFiles = 3
)

// A fixture contains the logs of a container and a runtime that writes these logs.
type fixture struct {
	t    testing.TB
	r    *Rotator
	dir  string
	log  Log
	out  *os.File
	line int
	// reopened is the number of calls of Options.Reopen. broken is the error that these calls
	// return.
	reopened int
	broken   error
}

func newFixture(t testing.TB) *fixture {
	root, err := os.MkdirTemp(t.TempDir(), "logs")
	must(t, err)
	b := &fixture{t: t, dir: filepath.Join(root, "pod", "c"), log: Log{Dir: "pod/c", ID: "id-0"}}
	must(t, os.MkdirAll(b.dir, 0o755))
	b.r = New(Options{Root: root, MaxSize: maxSize, MaxFiles: maxFiles, Reopen: b.reopen, Logs: func() []Log { return []Log{b.log} }})
	b.open()
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *fixture) open() {
	if b.out != nil {
		b.out.Close()
	}
	var err error
	b.out, err = os.OpenFile(filepath.Join(b.dir, logs.File{Attempt: b.log.Attempt}.Name()), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	must(b.t, err)
}

func (b *fixture) reopen(_ context.Context, id string) error {
	b.reopened++
	if b.broken != nil {
		return b.broken
	}
	if id != b.log.ID {
		b.t.Errorf("reopen: got container %q, want %q", id, b.log.ID)
	}
	b.open()
	entries, err := os.ReadDir(b.dir)
	must(b.t, err)
	links := func(e os.DirEntry) bool { return !e.Type().IsRegular() }
	if files := slices.DeleteFunc(entries, links); len(files) > maxFiles {
		b.t.Errorf("files after the runtime has opened a new one: got %v, want at most %d", files, maxFiles)
	}
	return nil
}

// write writes numbered lines with at least n bytes.
func (b *fixture) write(n int) {
	for size := 0; size < n; {
		text := fmt.Sprintf("2025-01-02T15:04:05Z stdout F line %06d\n", b.line)
		b.line++
		size += len(text)
		_, err := b.out.WriteString(text)
		must(b.t, err)
	}
}

// crash ends the container and starts the next attempt.
func (b *fixture) crash() {
	b.log.Attempt++
	b.log.ID = fmt.Sprintf("id-%d", b.log.Attempt)
	b.open()
}

// rotate sets the modification times of the logs to one minute ago, and then runs one rotation.
func (b *fixture) rotate() {
	b.t.Helper()
	for _, name := range b.names() {
		past := time.Now().Add(-time.Minute)
		must(b.t, os.Chtimes(filepath.Join(b.dir, name), past, past))
	}
	isIncomplete, err := b.r.rotate(b.t.Context(), b.log)
	must(b.t, err)
	if isIncomplete {
		b.t.Error("rotate: got incomplete true, want false")
	}
}

// keepRecent sets the modification time of the current file to the future, so that the file counts as
// recently written however long the test takes.
func (b *fixture) keepRecent() {
	b.t.Helper()
	future := time.Now().Add(time.Hour)
	must(b.t, os.Chtimes(b.out.Name(), future, future))
}

func (b *fixture) names() []string {
	entries, err := os.ReadDir(b.dir)
	must(b.t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (b *fixture) total() (total int64) {
	for _, name := range b.names() {
		info, err := os.Stat(filepath.Join(b.dir, name))
		must(b.t, err)
		total += info.Size()
	}
	return total
}

// lines returns the numbers N of the lines "line N" that rotation has not removed from the log of the
// current attempt, or of the previous attempt if previous is set.
func (b *fixture) lines(previous bool) (all []int) {
	b.t.Helper()
	err := logs.Read(b.t.Context(), logs.Options{Dir: filepath.Dir(b.dir), Container: "c", Previous: previous}, func(e logs.Entry) error {
		var n int
		if _, err := fmt.Sscanf(string(e.Text), "line %d", &n); err != nil || e.Malformed {
			b.t.Errorf("got the malformed line %q, want \"line N\"", e.Text)
		}
		all = append(all, n)
		return nil
	})
	must(b.t, err)
	return all
}

func TestRotate(t *testing.T) {
	b := newFixture(t)
	b.write(maxSize - 100)
	b.rotate()
	if b.reopened != 0 || len(b.names()) != 1 {
		t.Fatalf("below the limit: got %d reopens and files %v; want no reopen and one file", b.reopened, b.names())
	}
	b.write(100)
	b.rotate()
	if names := b.names(); b.reopened != 1 || len(names) != 2 || strings.HasSuffix(names[1], ".gz") {
		t.Fatalf("at the limit: got %d reopens and files %v; want 1 reopen, the new file and an uncompressed rotated file", b.reopened, names)
	}
	b.write(maxSize)
	b.rotate()
	if names := b.names(); len(names) != 3 || !strings.HasSuffix(names[1], ".gz") || strings.HasSuffix(names[2], ".gz") {
		t.Fatalf("second rotation: got files %v, want 0.log, a compressed file and an uncompressed file", names)
	}
	if got := b.lines(false); len(got) != b.line || !slices.IsSorted(got) {
		t.Errorf("lines after the second rotation: got %d, want %d in ascending order", len(got), b.line)
	}
	for range 5 {
		b.write(maxSize)
		b.rotate()
	}
	got := b.lines(false)
	if names := b.names(); len(names) != maxFiles || got[len(got)-1] != b.line-1 || got[0] == 0 {
		t.Errorf("after more rotations: got files %v with lines %d to %d of %d; want the maximum number of files and the newest of all lines", names, got[0], got[len(got)-1], b.line)
	}
}

// TestRotate_RecentlyWritten checks that a file that is too new to be truncated is checked
// again although it is no longer written.
func TestRotate_RecentlyWritten(t *testing.T) {
	b := newFixture(t)
	b.write(10 * maxSize)
	b.keepRecent()
	b.r.checkAll(t.Context())
	b.r.waitAll(t.Context())
	if names := b.names(); len(names) != 2 || b.total() < 10*maxSize {
		t.Fatalf("just written: got %d bytes in %v; want all bytes in 2 files", b.total(), names)
	}
	for _, name := range b.names() {
		past := time.Now().Add(-time.Minute)
		must(t, os.Chtimes(filepath.Join(b.dir, name), past, past))
	}
	b.r.states[b.log.Dir].nextCheck = time.Time{}
	b.r.checkAll(t.Context())
	b.r.waitAll(t.Context())
	if total := b.total(); total > maxSize {
		t.Errorf("a minute later: got %d bytes in %v; want at most %d bytes", total, b.names(), maxSize)
	}
}

// TestRotate_ReopenFails checks that a failed reopen restores the name of the file, so that no line
// is lost.
func TestRotate_ReopenFails(t *testing.T) {
	b := newFixture(t)
	b.write(maxSize)
	b.broken = errors.New("no such container")
	if _, err := b.r.rotate(t.Context(), b.log); !errors.Is(err, b.broken) {
		t.Errorf("got error %v, want %v", err, b.broken)
	}
	if names := b.names(); !slices.Equal(names, []string{"0.log"}) {
		t.Errorf("got files %v, want 0.log", names)
	}
	b.broken = nil
	b.rotate()
	if got := b.lines(false); len(got) != b.line || len(b.names()) != 2 {
		t.Errorf("got %d lines in files %v; want %d lines in 2 files", len(got), b.names(), b.line)
	}
}

// TestRotate_Interrupted checks rotations that an exit of podd interrupted between the
// rename and the new file of the runtime, or during the compression.
func TestRotate_Interrupted(t *testing.T) {
	b := newFixture(t)
	b.write(maxSize)
	must(t, os.Rename(filepath.Join(b.dir, "0.log"), filepath.Join(b.dir, "0.log.20250102-150405")))
	must(t, os.WriteFile(filepath.Join(b.dir, "0.log.20250101-000000.gz.tmp"), []byte("half"), 0o600))
	if _, needsWork := b.r.needsWork(b.log); !needsWork {
		t.Error("needsWork: got false, want true")
	}
	b.rotate()
	if names := b.names(); b.reopened != 1 || !slices.Equal(names, []string{"0.log", "0.log.20250102-150405"}) {
		t.Errorf("got %d reopens and files %v; want 1 reopen and the interrupted files without the temporary file", b.reopened, names)
	}
}

// TestRotate_EarlierAttempts checks that the limits hold in a crash loop, and that the end
// of the previous attempt is kept.
func TestRotate_EarlierAttempts(t *testing.T) {
	b := newFixture(t)
	b.write(20 * maxSize)
	last := b.line - 1
	b.crash()
	b.write(100)
	b.rotate()
	if total := b.total(); total > maxSize+200 {
		t.Errorf("got %d bytes in %v; want at most %d bytes", total, b.names(), maxSize+200)
	}
	if got := b.lines(true); len(got) == 0 || got[len(got)-1] != last || !slices.IsSorted(got) {
		t.Errorf("previous attempt: got %v, want the last lines up to %d", got, last)
	}
}

// TestRotate_PreviousAttemptReadable checks that the last lines of an attempt can be read
// if its log was rotated just before it exited.
func TestRotate_PreviousAttemptReadable(t *testing.T) {
	b := newFixture(t)
	b.write(20 * maxSize)
	b.rotate()
	last := b.line - 1
	b.crash()
	b.write(100)
	b.rotate()
	var got []string
	o := logs.Options{Dir: filepath.Dir(b.dir), Container: "c", Previous: true, TailLines: 1}
	must(t, logs.Read(t.Context(), o, func(e logs.Entry) error { got = append(got, string(e.Text)); return nil }))
	if want := fmt.Sprintf("line %06d", last); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q; files %v", got, want, b.names())
	}
}

// TestRotate_KeepsPreviousWhileIncomplete checks that the log of an earlier attempt is not removed
// because the log of a later attempt is temporarily too large.
func TestRotate_KeepsPreviousWhileIncomplete(t *testing.T) {
	b := newFixture(t)
	b.write(2 * maxSize)
	b.rotate()
	b.log.ID = ""
	b.crash()
	b.write(20 * maxSize)
	b.log.ID = ""
	b.keepRecent()
	if isIncomplete, err := b.r.rotate(t.Context(), b.log); !isIncomplete || err != nil {
		t.Fatalf("got incomplete %v, error %v; want true and no error", isIncomplete, err)
	}
	if got := b.lines(true); len(got) == 0 {
		t.Errorf("previous attempt: got no lines in files %v, want some", b.names())
	}
	b.rotate()
	if got := b.lines(true); len(got) == 0 || b.total() > maxFiles*maxSize {
		t.Errorf("got %d lines of the previous attempt and %d bytes in %v; want at least 1 line and at most %d bytes", len(got), b.total(), b.names(), maxFiles*maxSize)
	}
}

// TestRotate_LinksAndDirectories checks that links and directories in the place of logs
// are not changed.
func TestRotate_LinksAndDirectories(t *testing.T) {
	b := newFixture(t)
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, bytes.Repeat([]byte("x"), 10*maxSize), 0o600))
	must(t, os.Symlink(secret, filepath.Join(b.dir, "0.log.20250102-150405")))
	must(t, os.Mkdir(filepath.Join(b.dir, "0.log.20250102-150406"), 0o755))
	must(t, os.Remove(filepath.Join(b.dir, "0.log")))
	must(t, os.Symlink(secret, filepath.Join(b.dir, "0.log")))
	b.log.Attempt = 3
	_, _ = b.r.rotate(t.Context(), b.log) // an error about the link is allowed
	if info, err := os.Stat(secret); err != nil || info.Size() != 10*maxSize {
		t.Errorf("target of the link: got %v (error %v); want it unchanged", info, err)
	}
	outside := Log{Dir: "../../etc", Attempt: 1}
	if _, err := b.r.rotate(t.Context(), outside); err == nil {
		t.Error("directory above the root: got no error, want one")
	}
}

// TestLimits checks with random writes and crashes that the remaining logs are within the
// limits, and contain the newest lines completely.
func TestLimits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newFixture(t)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			b.write(rapid.IntRange(0, 4*maxSize).Draw(rt, "bytes"))
			if rapid.IntRange(0, 3).Draw(rt, "crash") == 0 {
				b.crash()
			}
			b.rotate()
			if n := len(b.names()); n > maxFiles {
				rt.Fatalf("got %d files %v; want at most %d", n, b.names(), maxFiles)
			}
			if total := b.total(); total > maxFiles*maxSize {
				rt.Fatalf("got %d bytes in %v; want at most %d", total, b.names(), maxFiles*maxSize)
			}
		}
		b.write(1)
		got := b.lines(false)
		if !slices.IsSorted(got) || got[len(got)-1] != b.line-1 {
			rt.Fatalf("got lines %v, want ascending lines up to %d", got, b.line-1)
		}
	})
}

func TestNextCheck(t *testing.T) {
	now := time.Now()
	o := Options{MaxSize: 100, CheckInterval: 10 * time.Second}
	for name, test := range map[string]struct {
		size, grown int64
		took, want  time.Duration
	}{
		"nothing written":  {50, 0, time.Second, 10 * time.Second},
		"slowly":           {50, 1, time.Second, 10 * time.Second},
		"near the limit":   {50, 10, time.Second, 2500 * time.Millisecond},
		"fast":             {50, 50, time.Second, 500 * time.Millisecond},
		"very fast":        {99, 99, time.Millisecond, minInterval},
		"never checked":    {50, 50, 0, 10 * time.Second},
		"beyond the limit": {150, 10, time.Second, minInterval},
	} {
		if got := nextCheck(now, test.size, test.grown, test.took, o).Sub(now); got != test.want {
			t.Errorf("%s: time until the next check: got %v, want %v", name, got, test.want)
		}
	}
}
