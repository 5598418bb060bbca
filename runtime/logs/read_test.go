package logs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"podd/runtime/safepath"
)

// logDir creates the log directory of a pod with files of a container "c".
func logDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "default_web_uid")
	if err := os.MkdirAll(filepath.Join(dir, "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write([]byte(text))
			z.Close()
			text = b.String()
		}
		if err := os.WriteFile(filepath.Join(dir, "c", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// An output collects entries: the bytes of each stream, and a transcript of all entries.
type output struct {
	bytes map[Stream]*bytes.Buffer
	lines []string
}

func (o *output) emit(e Entry) error {
	if o.bytes == nil {
		o.bytes = map[Stream]*bytes.Buffer{Stdout: {}, Stderr: {}, "": {}}
	}
	b := o.bytes[e.Stream]
	b.Write(e.Text)
	end := "+"
	if !e.Partial {
		b.WriteByte('\n')
		end = ""
	}
	o.lines = append(o.lines, fmt.Sprintf("%d %s %s%s", e.Attempt, e.Stream, e.Text, end))
	return nil
}

func read(t *testing.T, o Options) []string {
	t.Helper()
	o.Container = "c"
	var out output
	if err := Read(t.Context(), o, out.emit); err != nil {
		t.Fatal(err)
	}
	return out.lines
}

func number(n uint32) *uint32 { return &n }

func TestRead_Attempts(t *testing.T) {
	line := func(text string) string { return logLine(Stdout, false, text) }
	dir := logDir(t, map[string]string{
		"0.log":                    line("a"),
		"2.log.20250101-000000.gz": line("b1"),
		"2.log.20250102-000000":    line("b2"),
		"2.log.20250102-000000.gz": "not gzip: still being compressed",
		"2.log":                    line("b3"),
		"3.log":                    line("c"),
		"3.log.tmp":                line("no log"),
		"unrelated":                line("no log"),
	})
	for _, test := range []struct {
		name string
		o    Options
		want []string
	}{
		{"newest", Options{}, []string{"3 stdout c"}},
		{"previous", Options{Previous: true}, []string{"2 stdout b1", "2 stdout b2", "2 stdout b3"}},
		{"one attempt", Options{Attempt: number(0)}, []string{"0 stdout a"}},
		{"previous to an attempt", Options{Attempt: number(2), Previous: true}, []string{"0 stdout a"}},
		{"restarts", Options{Attempt: number(1), LaterAttempts: true}, []string{"2 stdout b1", "2 stdout b2", "2 stdout b3", "3 stdout c"}},
		{"tail over files", Options{Attempt: number(2), TailLines: 2}, []string{"2 stdout b2", "2 stdout b3"}},
		{"tail stops at compressed ones", Options{Attempt: number(2), TailLines: 9}, []string{"2 stdout b2", "2 stdout b3"}},
		{"tail over attempts", Options{Attempt: number(0), LaterAttempts: true, TailLines: 2}, []string{"2 stdout b3", "3 stdout c"}},
		{"no lines", Options{TailLines: -1}, nil},
	} {
		test.o.Dir = dir
		if diff := cmp.Diff(test.want, read(t, test.o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	for _, o := range []Options{
		{Dir: dir, Container: "c", Attempt: number(1)},
		{Dir: dir, Container: "c", Attempt: number(0), Previous: true},
		{Dir: dir, Container: "none"},
		{Dir: dir + "x", Container: "c"},
	} {
		if err := Read(t.Context(), o, func(Entry) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: got error %v, want ErrNotExist", o, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", "../c", "/c"} {
		if err := Read(t.Context(), Options{Dir: dir, Container: bad}, func(Entry) error { return nil }); err == nil {
			t.Errorf("container %q: got no error, want one", bad)
		}
	}
}

func TestRead_Options(t *testing.T) {
	at := func(second int, rest string) string { return fmt.Sprintf("2025-01-02T15:04:%02dZ %s\n", second, rest) }
	dir := logDir(t, map[string]string{"0.log": at(1, "stdout F one") + at(2, "stderr F two") + "garbage\n" +
		at(3, "stdout P thr") + at(4, "stderr F four") + at(4, "stdout F ee") + at(5, "stdout F five")})
	for _, test := range []struct {
		name string
		o    Options
		want []string
	}{
		{"all", Options{}, []string{"0 stdout one", "0 stderr two", "0  garbage", "0 stdout thr+", "0 stderr four", "0 stdout ee", "0 stdout five"}},
		{"stdout", Options{Stream: Stdout}, []string{"0 stdout one", "0  garbage", "0 stdout thr+", "0 stdout ee", "0 stdout five"}},
		{"since", Options{Since: time.Date(2025, 1, 2, 15, 4, 4, 0, time.UTC)}, []string{"0 stderr four", "0 stdout ee", "0 stdout five"}},
		{"limit in a line", Options{LimitBytes: 5}, []string{"0 stdout one", "0 stderr t+"}},
		{"limit at its end", Options{LimitBytes: 4}, []string{"0 stdout one"}},
		{"limit at its newline", Options{LimitBytes: 3}, []string{"0 stdout one+"}},
		{"tail 1", Options{TailLines: 1}, []string{"0 stdout five"}},
		{"tail 2 with its pieces", Options{TailLines: 2}, []string{"0 stdout thr+", "0 stdout ee", "0 stdout five"}},
		{"tail 3", Options{TailLines: 3}, []string{"0 stdout thr+", "0 stderr four", "0 stdout ee", "0 stdout five"}},
		{"tail 2 of stderr", Options{TailLines: 2, Stream: Stderr}, []string{"0  garbage", "0 stderr four"}},
		{"tail of more", Options{TailLines: 99, Stream: Stdout}, []string{"0 stdout one", "0  garbage", "0 stdout thr+", "0 stdout ee", "0 stdout five"}},
	} {
		test.o.Dir = dir
		if diff := cmp.Diff(test.want, read(t, test.o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	stop := errors.New("stop")
	n := 0
	err := Read(t.Context(), Options{Dir: dir, Container: "c"}, func(Entry) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("Read whose emit function fails: got error %v after %d entries; want this error after 1 entry", err, n)
	}
}

// TestRead_OnFile checks that Read calls OnFile for each file after it has emitted the entries of the
// previous file, and before it emits the entries of this file.
func TestRead_OnFile(t *testing.T) {
	dir := logDir(t, map[string]string{
		"0.log.20250101-000000.gz": logLine(Stdout, false, "a"), "0.log.20250102-000000": logLine(Stdout, false, "b"),
		"0.log": logLine(Stdout, false, "c"), "1.log": logLine(Stdout, false, "d"),
	})
	var got []string
	o := Options{Dir: dir, Container: "c", Attempt: number(0), LaterAttempts: true, OnFile: func(f *os.File) { got = append(got, filepath.Base(f.Name())) }}
	if err := Read(t.Context(), o, func(e Entry) error { got = append(got, string(e.Text)); return nil }); err != nil {
		t.Fatal(err)
	}
	want := []string{"0.log.20250101-000000.gz", "a", "0.log.20250102-000000", "b", "0.log", "c", "1.log", "d"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls of OnFile and entries (-want +got):\n%s", diff)
	}
}

func TestRead_DamagedFiles(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 3*bufferSize/16+5)
	dir := logDir(t, map[string]string{
		"0.log.20250101-000000.gz": "x",
		"0.log.20250102-000000":    logLine(Stderr, false, long) + long + "\n" + logLine(Stdout, false, "after"),
		"0.log":                    "\n" + strings.TrimSuffix(logLine(Stdout, false, "cut short"), "\n"),
	})
	bad := filepath.Join(dir, "c", "0.log.20250101-000000.gz")
	if err := os.WriteFile(bad, []byte("this is not gzip"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out output
	if err := Read(t.Context(), Options{Dir: dir, Container: "c"}, out.emit); err != nil {
		t.Fatal(err)
	}
	if got := out.bytes[Stderr].String(); got != long+"\n" {
		t.Errorf("stderr: got %d bytes, want %d", len(got), len(long)+1)
	}
	if got, want := out.bytes[Stdout].String(), "after\ncut short"; got != want {
		t.Errorf("stdout: got %q, want %q", got, want)
	}
	if got, want := out.bytes[""].String(), "podd: reading "+bad+": gzip: invalid header\n"+long+"\n\n"; got != want {
		t.Errorf("malformed entries: got %.200q, want %.200q", got, want)
	}
}

func TestRead_LinksAndPipes(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("root:x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(dir string) error{
		"file":      func(dir string) error { return os.Symlink(secret, dir+"/c/0.log") },
		"pipe":      func(dir string) error { return unix.Mkfifo(dir+"/c/0.log", 0o644) },
		"directory": func(dir string) error { os.Remove(dir + "/c"); return os.Symlink(filepath.Dir(secret), dir+"/c") },
		"pod":       func(dir string) error { os.RemoveAll(dir); return os.Symlink(filepath.Dir(secret), dir) },
	} {
		dir := logDir(t, nil)
		if err := plant(dir); err != nil {
			t.Fatal(err)
		}
		var out output
		err := Read(t.Context(), Options{Dir: dir, Container: "c"}, out.emit)
		if !errors.Is(err, safepath.ErrLink) && !errors.Is(err, safepath.ErrNotRegular) || len(out.lines) > 0 {
			t.Errorf("%s: got lines %q, error %v; want ErrLink or ErrNotRegular", name, out.lines, err)
		}
	}
}

// entries returns the text of a random log file. For each entry in the file, it returns whether the
// entry ends a line, the stream and the text.
func entries(t *rapid.T) (log string, ends []bool, streams []Stream, texts []string) {
	for range rapid.IntRange(0, 40).Draw(t, "entries") {
		s := rapid.SampledFrom([]Stream{Stdout, Stderr}).Draw(t, "stream")
		partial := rapid.IntRange(0, 3).Draw(t, "partial") == 0
		text := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 3, 50, 300, blockSize - 40, blockSize}).Draw(t, "length"))
		log += logLine(s, partial, text)
		ends, streams, texts = append(ends, !partial), append(streams, s), append(texts, text)
	}
	return log, ends, streams, texts
}

// TestRead_Property checks with random logs that Read emits all bytes of each stream or, with TailLines n,
// those of exactly the last n lines with all their parts.
func TestRead_Property(t *testing.T) {
	dir := logDir(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		log, ends, streams, texts := entries(t)
		if err := os.WriteFile(filepath.Join(dir, "c", "0.log"), []byte(log), 0o644); err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(0, 12).Draw(t, "tail")
		want := map[Stream]string{}
		for i := range texts {
			if n == 0 || linesFrom(ends, streams, i) <= n {
				want[streams[i]] += texts[i]
				if ends[i] {
					want[streams[i]] += "\n"
				}
			}
		}
		var out output
		if err := Read(context.Background(), Options{Dir: dir, Container: "c", TailLines: n}, out.emit); err != nil {
			t.Fatal(err)
		}
		for _, s := range []Stream{Stdout, Stderr} {
			got := ""
			if out.bytes != nil {
				got = out.bytes[s].String()
			}
			if got != want[s] {
				t.Fatalf("TailLines %d, stream %s: got %d bytes that differ from the written ones, want the %d written bytes", n, s, len(got), len(want[s]))
			}
		}
	})
}

// linesFrom returns how many lines remain, including the line that contains entry i. The position of a
// line is that of its last entry.
func linesFrom(ends []bool, streams []Stream, i int) int {
	isEnd := func(k int) bool {
		if ends[k] {
			return true
		}
		for j := k + 1; j < len(ends); j++ {
			if streams[j] == streams[k] {
				return false
			}
		}
		return true // k is the last entry of its stream
	}
	for !isEnd(i) {
		j := i + 1
		for streams[j] != streams[i] {
			j++
		}
		i = j
	}
	n := 0
	for k := i; k < len(ends); k++ {
		if isEnd(k) {
			n++
		}
	}
	return n
}

func TestJoiner(t *testing.T) {
	var out output
	j := &Joiner{Output: out.emit, MaxLineBytes: 8}
	for _, e := range []Entry{
		{Stream: Stdout, Text: []byte("a"), Partial: true},
		{Stream: Stderr, Text: []byte("b"), Partial: true},
		{Stream: Stdout, Text: []byte("c")},
		{Text: []byte("?"), Malformed: true},
		{Stream: Stdout, Text: []byte("d")},
		{Stream: Stdout, Text: []byte("0123456789"), Partial: true},
		{Stream: Stdout, Text: []byte("e"), Partial: true},
		{Stream: Stdout},
		{Stream: Stdout, Text: []byte("died"), Partial: true},
		{Attempt: 1, Stream: Stdout, Text: []byte("f")},
		{Stream: Stderr, Text: []byte("g"), Partial: true},
	} {
		if err := j.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	want := []string{"0 stdout ac", "0  ?", "0 stdout d", "0 stdout 0123456789+", "0 stdout e", "0 stdout died+", "1 stdout f", "0 stderr bg+"}
	if diff := cmp.Diff(want, out.lines); diff != "" {
		t.Errorf("joined lines (-want +got):\n%s", diff)
	}
}
