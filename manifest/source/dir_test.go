package source

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/filename"
	"podd/runtime/runtimetest/syncbuffer"
)

// TestDir_PollsWithoutInotify checks that podd polls a directory if inotify has reached a limit or
// its channels are closed.
func TestDir_PollsWithoutInotify(t *testing.T) {
	for name, watcher := range map[string]func() (*fsnotify.Watcher, error){
		"no instance": func() (*fsnotify.Watcher, error) {
			return nil, fmt.Errorf("creating inotify instance: %w", unix.EMFILE)
		},
		"closed": func() (*fsnotify.Watcher, error) {
			w, err := fsnotify.NewWatcher()
			if err == nil {
				err = w.Close()
			}
			return w, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newTree(t)
			d.write("a.yaml", yaml("a"))
			s := NewDir(d.path, testOptions(t))
			s.newWatcher = watcher
			r := run(t, s)
			r.untilProblem("podd polls them every 1s instead", "a")
			d.write("a.yaml", yaml("a=2"))
			r.untilPods("a=2")
			d.remove("a.yaml")
			r.untilPods()
		})
	}
}

func TestDir_ReadsTwiceWithoutLeases(t *testing.T) {
	t.Parallel()
	d := newTree(t)
	d.write("a.yaml", yaml("a"))
	s := NewDir(d.path, testOptions(t))
	var reads atomic.Int32
	s.reader.checkLease = func(*os.File) writerState {
		reads.Add(1)
		return unknownWriter
	}
	r := run(t, s)
	r.untilPods("a")
	if n := reads.Load(); n < 2 {
		t.Errorf("got %d reads of the file, want at least 2", n)
	}
	d.write("a.yaml", yaml("a=2"))
	r.untilPods("a=2")
}

// TestDir_EqualReadings checks when podd regards a file as complete if the kernel does not report
// writers. podd must have read the same content with the same stamp twice, at least secondReadDelay apart.
func TestDir_EqualReadings(t *testing.T) {
	now := time.Now()
	one, two := readResult{digest: "1", stamp: stamp{size: 1}}, readResult{digest: "2", stamp: stamp{size: 1}}
	touched := readResult{digest: "1", stamp: stamp{size: 1, mtime: 9}}
	var first firstRead
	for i, step := range []struct {
		readResult
		after    time.Duration
		complete bool
	}{
		{one, 0, false}, {one, secondReadDelay - 1, false}, {two, secondReadDelay, false}, {one, 2 * secondReadDelay, false},
		{touched, 3 * secondReadDelay, false}, {touched, 4 * secondReadDelay, true},
	} {
		if err := first.confirm(step.readResult, now.Add(step.after)); (err == nil) != step.complete {
			t.Errorf("step %d: got error %v, want none if the file is complete; file is complete: %v", i, err, step.complete)
		}
	}
}

// TestDir_WritableDuringRead checks that podd does not use the content of a file if all users got
// the right to replace the file after the directory was listed and before the file was read.
func TestDir_WritableDuringRead(t *testing.T) {
	for name, test := range map[string]struct {
		isLink bool
		want   error
	}{
		"directory of the manifests": {false, errWorldWritable},
		"directory of a link target": {true, errUnsafeLink},
	} {
		d, targets := newTree(t), newTree(t)
		file, writable := d.in("a.yaml"), d
		if test.isLink {
			if err := os.Symlink(targets.in("b.yaml"), file); err != nil {
				t.Fatal(err)
			}
			file, writable = targets.in("b.yaml"), targets
		}
		writable.write(filepath.Base(file), yaml("a"))
		s := NewDir(d.path, testOptions(t))
		s.reader.checkLease = func(*os.File) writerState {
			if err := os.Chmod(writable.path, 0o777); err != nil {
				t.Error(err)
			}
			return noWriter
		}
		var last manifest.Batch
		f := newFollower(s, func(b manifest.Batch) { last = b })
		f.check(time.Now())
		f.close()
		if podsOf(last) != "" || !strings.Contains(problemsOf(last), test.want.Error()) {
			t.Errorf("%s: got pods %q and problems %s, want no pods and a problem with %q", name, podsOf(last), problemsOf(last), test.want)
		}
	}
}

// TestDir_Idle checks that a source without changes opens no file and emits no Batch.
func TestDir_Idle(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	d.write("a.yaml", yaml("a"))
	d.write("b.yaml", broken)
	now := time.Now().Add(time.Hour) // all files are settled (stamp.settled)
	s := NewDir(d.path, o)
	opened, emitted := 0, 0
	s.reader.checkLease = func(f *os.File) writerState { opened++; return checkLease(f) }
	f := newFollower(s, func(manifest.Batch) { emitted++ })
	defer f.close()
	for i := range 10 {
		f.nextScan = time.Time{}
		f.check(now)
		if i == 0 {
			opened = 0
		}
	}
	if opened != 0 || emitted != 1 {
		t.Errorf("nine idle checks: opened files %d times and emitted %d batches, want 0 and 1", opened, emitted)
	}
}

// TestDir_MissingState checks that the state of a removed file reports that the file is missing, until
// removeDelay has passed and the state is removed.
func TestDir_MissingState(t *testing.T) {
	d := newTree(t)
	now := time.Now().Add(time.Hour)
	var last manifest.Batch
	f := newFollower(NewDir(d.path, testOptions(t)), func(b manifest.Batch) { last = b })
	defer f.close()
	d.write("a.yaml", broken)
	d.write("b.yaml", yaml("b"))
	states := func(after time.Duration) string {
		f.nextScan, now = time.Time{}, now.Add(after)
		f.check(now)
		var all []string
		for _, s := range last.FileStates {
			all = append(all, fmt.Sprintf("%s missing=%t", filepath.Base(s.Path), s.IsMissing))
		}
		return strings.Join(all, ", ")
	}
	if got, want := states(0), "a.yaml missing=false, b.yaml missing=false"; got != want {
		t.Errorf("file states: got %s, want %s", got, want)
	}
	if err := os.Remove(d.in("a.yaml")); err != nil {
		t.Fatal(err)
	}
	if got, want := states(time.Millisecond), "a.yaml missing=true, b.yaml missing=false"; got != want {
		t.Errorf("file states after the removal: got %s, want %s", got, want)
	}
	if got, want := states(2*removeDelay), "b.yaml missing=false"; got != want {
		t.Errorf("file states after removeDelay: got %s, want %s", got, want)
	}
}

// TestDir_Rename_ListedInBetween checks that a renamed file keeps its last valid content if a
// listing contains neither its old nor its new name. This happens if the directory is listed during
// the rename, and podd lists it again only after removeDelay.
func TestDir_Rename_ListedInBetween(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	now := time.Now().Add(time.Hour)
	var last manifest.Batch
	f := newFollower(NewDir(d.path, o), func(b manifest.Batch) { last = b })
	defer f.close()
	check := func() {
		t.Helper()
		f.nextScan, now = time.Time{}, now.Add(2*removeDelay)
		f.check(now)
		if got := strings.Fields(podsOf(last)); !slices.Contains(got, "a") || !slices.Contains(got, "z") {
			t.Fatalf("got %s, want pods a and z", show(last))
		}
	}
	d.write("a.yaml", yaml("a"))
	d.write("z.yaml", yaml("z"))
	check()
	d.write("a.yaml", broken)
	check()
	outside := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.Rename(d.in("a.yaml"), outside); err != nil {
		t.Fatal(err)
	}
	check()
	if err := os.Rename(outside, d.in("b.yaml")); err != nil {
		t.Fatal(err)
	}
	check()
}

// TestDir_UntrustedLink checks that a link out of a sticky, untrusted directory is refused.
func TestDir_UntrustedLink(t *testing.T) {
	d := newTree(t)
	outside := filepath.Join(filepath.Dir(d.path), "secret.yaml")
	if err := os.WriteFile(outside, []byte(yaml("secret")), 0o600); err != nil {
		t.Fatal(err)
	}
	d.write("inside.yaml", yaml("inside"))
	if err := os.Symlink("../secret.yaml", d.in("a.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(d.path, 0o1777); err != nil {
		t.Fatal(err)
	}
	r := run(t, NewDir(d.in("a.yaml"), testOptions(t)))
	r.untilProblem("escapes")
	if err := os.Symlink("inside.yaml", d.in("b.yaml")); err != nil {
		t.Fatal(err)
	}
	d.rename("b.yaml", "a.yaml")
	r.untilPods("inside")
}

func TestDir_HasCachedContent(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	check := func(want bool) {
		t.Helper()
		if got := NewDir(d.path, o).HasCachedContent(); got != want {
			t.Errorf("HasCachedContent: got %v, want %v", got, want)
		}
	}
	check(false)
	d.write("a.yaml", yaml("a"))
	r := run(t, NewDir(d.path, o))
	r.untilPods("a")
	r.stop()
	check(true)
	d.remove("a.yaml")
	r = run(t, NewDir(d.path, o))
	r.untilPods()
	r.stop()
	check(false)
	indexes, err := filepath.Glob(filepath.Join(o.CacheDir, "*", indexName))
	if err != nil || len(indexes) != 1 {
		t.Fatal(indexes, err)
	}
	if err := os.WriteFile(indexes[0], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(true)
}

func TestDir_TooManyFiles(t *testing.T) {
	d := newTree(t)
	d.write("a.yaml", yaml("a"))
	r := run(t, NewDir(d.path, testOptions(t)))
	r.untilPods("a")
	d.write(".0", "")
	for i := range maxEntries {
		if err := os.Link(d.in(".0"), d.in(fmt.Sprintf(".0.%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	d.write("a.yaml", yaml("evil"))
	b := r.until("too many entries", func(b manifest.Batch) bool { return strings.Contains(problemsOf(b), "too many entries (limit 10000)") })
	if podsOf(b) != "a" {
		t.Errorf("got %s, want the previous pods", show(b))
	}
}

func TestDir_LogsSkippedFilesOnce(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	d.write("README", "")
	d.write("a.yaml~", "")
	o.Now = func() time.Time { return time.Now().Add(time.Minute) } // the files are old
	var log syncbuffer.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	r := run(t, NewDir(d.path, o))
	r.untilProblem("README: warning: ignored: its name does not end in .yaml, .yml, .json, .manifest")
	d.write("b.yaml", yaml("b"))
	r.untilPods("b")
	if got := strings.Count(log.String(), "README"); got != 1 {
		t.Errorf("log lines about README: got %d, want 1 in\n%s", got, log.String())
	}
	if got := strings.Count(log.String(), "a.yaml~"); got != 1 {
		t.Errorf("log lines about a.yaml~: got %d, want 1 in\n%s", got, log.String())
	}
}

// TestDir_ReadsAnyName checks which files of a directory are read if ReadsAnyName is set, and that
// ignored backup files are Problems.
func TestDir_ReadsAnyName(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	for i, name := range []string{"pod", "web.manifest", "web.txt", "web.yaml", ".web.yaml.swp", "web.yaml~", "4913", "web.yaml.bak"} {
		d.write(name, yaml(fmt.Sprint("p", i)))
	}
	o.ReadsAnyName = true
	o.Now = func() time.Time { return time.Now().Add(time.Minute) } // the files are old
	r := run(t, NewDir(d.path, o))
	for _, name := range []string{"4913", "web.yaml.bak", "web.yaml~"} {
		r.untilProblem(name+": warning: ignored: its name is that of a backup file", "p0", "p1", "p2", "p3")
	}
	d.write("pod", yaml("p0=2"))
	r.untilPods("p0=2", "p1", "p2", "p3")
	d.write("www", yaml("p4"))
	r.untilPods("p0=2", "p1", "p2", "p3", "p4")
	d.remove("pod")
	r.untilPods("p1", "p2", "p3", "p4")
	d.write("README", "This is no manifest.")
	r.untilProblem("README", "p1", "p2", "p3", "p4")
}

// TestDir_Property checks that after any sequence of changes the desired pods are those of the
// existing files.
func TestDir_Property(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := tree{t, filepath.Join(t.TempDir(), "m")}.mkdir()
		r := run(t, NewDir(d.path, testOptions(t)))
		defer r.stop()
		names := rapid.SampledFrom([]string{"a.yaml", "b.yaml", "c.json", "d.yml"})
		n := 0
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				n++
				d.write(names.Draw(rt, "name"), yaml(fmt.Sprint("pod", n%5, "=", n)))
			},
			"replace": func(rt *rapid.T) {
				n++
				d.write(".tmp", yaml(fmt.Sprint("pod", n%5, "=", n)))
				d.rename(".tmp", names.Draw(rt, "name"))
			},
			"rename": func(rt *rapid.T) {
				err := os.Rename(d.in(names.Draw(rt, "from")), d.in(names.Draw(rt, "to")))
				if err != nil && !os.IsNotExist(err) {
					rt.Fatal(err)
				}
			},
			"remove": func(rt *rapid.T) { d.remove(names.Draw(rt, "name")) },
			"observe": func(rt *rapid.T) {
				if _, instead := r.await(func(b manifest.Batch) bool { return podsOf(b) == d.pods(rt) }); instead != "" {
					rt.Fatalf("waiting for pods %s: got %s", d.pods(rt), instead)
				}
			},
		})
		if _, instead := r.await(func(b manifest.Batch) bool { return podsOf(b) == d.pods(rt) }); instead != "" {
			rt.Fatalf("waiting for pods %s: got %s", d.pods(rt), instead)
		}
	})
}

// pods returns the pods of the existing files, in the format of podsOf.
func (d tree) pods(rt *rapid.T) string {
	var b manifest.Batch
	entries, err := os.ReadDir(d.path)
	if err != nil {
		rt.Fatal(err)
	}
	for _, e := range entries {
		data, err := fs.ReadFile(os.DirFS(d.path), e.Name())
		if err != nil {
			rt.Fatal(err)
		}
		if filename.Classify(e.Name()) == filename.Manifest {
			b.Pods = append(b.Pods, decode.File(data, decode.Options{NodeName: "node"}).Pods...)
		}
	}
	return podsOf(b)
}

// fileModel is the model of a file: the pods of its last valid content, and whether the file
// has that content now.
type fileModel struct {
	pods    string
	isValid bool
}

// TestDir_LastValidContent_Property checks that after any sequence of valid and invalid
// contents and restarts the last valid content of each file runs.
func TestDir_LastValidContent_Property(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d, o := tree{t, filepath.Join(t.TempDir(), "m")}.mkdir(), testOptions(t)
		o.CacheDir = filepath.Join(filepath.Dir(d.path), "sources")
		r := run(t, NewDir(d.path, o))
		defer func() { r.stop() }()
		model, n := map[string]fileModel{}, 0
		names := rapid.SampledFrom([]string{"a.yaml", "b.yaml", "c.yaml"})
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				name := names.Draw(rt, "name")
				n++
				pod := fmt.Sprint("pod", n)
				d.write(name, yaml(pod))
				model[name] = fileModel{pod, true}
			},
			"break": func(rt *rapid.T) {
				name := names.Draw(rt, "name")
				d.write(name, broken)
				model[name] = fileModel{model[name].pods, false}
			},
			"rename": func(rt *rapid.T) {
				from, to := names.Draw(rt, "from"), names.Draw(rt, "to")
				moved, ok := model[from]
				if !ok || from == to {
					rt.Skip("nothing to rename")
				}
				d.rename(from, to)
				if old := model[to].pods; !moved.isValid && old != "" {
					moved.pods = old
				}
				delete(model, from)
				model[to] = moved
			},
			"remove": func(rt *rapid.T) {
				name := names.Draw(rt, "name")
				d.remove(name)
				delete(model, name)
			},
			"restart": func(*rapid.T) {
				r.stop()
				r = run(t, NewDir(d.path, o))
			},
			"": func(rt *rapid.T) {
				want := expected(d, model)
				if _, instead := r.await(func(b manifest.Batch) bool { return observed(b) == want }); instead != "" {
					rt.Fatalf("waiting for\n%s\ngot %s", want, instead)
				}
			},
		})
	})
}

// expected returns the Batch of a model as text, in the format of observed.
func expected(d tree, model map[string]fileModel) string {
	var lines []string
	for name, f := range model {
		lines = append(lines, fmt.Sprintf("%s runs=%v valid=%v", d.in(name), f.pods != "", f.isValid))
		if f.pods != "" {
			lines = append(lines, f.pods+" from "+d.in(name))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// observed returns the files and pods of a Batch as text.
func observed(b manifest.Batch) string {
	var lines []string
	for _, f := range b.FileStates {
		broken := f.OutdatedReason != "" || f.Digest == ""
		lines = append(lines, fmt.Sprintf("%s runs=%v valid=%v", f.Path, f.Digest != "", !broken))
	}
	for _, p := range b.Pods {
		lines = append(lines, strings.TrimSuffix(p.Key.Name, "-node")+" from "+p.Origin.Path)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
