package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podd/manifest"
)

// TestDir_BareMountPoint checks that the pods of manifests on an unmounted filesystem are not
// removed if the mount point contains other manifests. It checks this while podd runs and after a
// restart.
func TestDir_BareMountPoint(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(map[bool]string{true: "podd runs", false: "podd is stopped"}[running], func(t *testing.T) {
			d, o := newTree(t), testOptions(t)
			o.CheckFrequency = 20 * time.Millisecond
			filesystem := tree{t, filepath.Join(t.TempDir(), "fs")}.mkdir()
			filesystem.write("a.yaml", yaml("a"))
			filesystem.write("b.yaml", yaml("b"))
			mount := func() {
				t.Helper()
				if err := unix.Mount(filesystem.path, d.path, "", unix.MS_BIND, ""); err != nil {
					t.Fatal(err)
				}
			}
			unmount := func() {
				t.Helper()
				if err := unix.Unmount(d.path, unix.MNT_DETACH); err != nil {
					t.Fatal(err)
				}
			}
			d.write("s.yaml", yaml("s"))
			mount()
			t.Cleanup(func() { _ = unix.Unmount(d.path, unix.MNT_DETACH) })
			s := NewDir(d.path, o)
			s.settleDelay = 0 // a mount point is never accepted because of its age
			r := run(t, s)
			r.untilPods("a", "b")
			restart := func() {
				if !running {
					r.stop()
					r = run(t, s)
				}
			}
			unmount()
			restart()
			const problem = "the file system with the manifests is not mounted, and 2 manifests are missing"
			b := r.untilProblem(problem, "s", "a", "b")
			for _, f := range b.FileStates {
				if want := filepath.Base(f.Path) != "s.yaml"; (f.OutdatedReason == outdatedGone) != want {
					t.Errorf("%s: got OutdatedReason %q; want the reason %q: %v", f.Path, f.OutdatedReason, outdatedGone, want)
				}
			}
			d.write("s.yaml", yaml("s=2"))
			restart()
			r.untilProblem(problem, "s=2", "a", "b")
			d.write("t.yaml", yaml("t"))
			r.untilProblem(problem, "s=2", "t", "a", "b")
			d.remove("t.yaml")
			r.untilProblem(problem, "s=2", "a", "b")
			mount()
			restart()
			r.until("the pods of the filesystem without problems", func(b manifest.Batch) bool { return podsOf(b) == "a b" && len(b.Problems) == 0 })
			filesystem.remove("b.yaml")
			r.untilPods("a")
			unmount()
			restart()
			r.untilProblem("not mounted, and 1 manifest is missing", "s=2", "a")
			if err := s.AcceptEmpty(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.until("only the pods of the accepted directory", func(b manifest.Batch) bool { return podsOf(b) == "s=2" && len(b.Problems) == 0 })
			if err := s.AcceptEmpty(t.Context()); !errors.Is(err, ErrNothingToAccept) {
				t.Errorf("second AcceptEmpty: got %v, want ErrNothingMissing", err)
			}
			r.stop()
			all, _ := r.batches()
			for _, b := range all {
				if !b.IsComplete {
					t.Errorf("got %s, want a complete listing", show(b))
				}
			}
			r = run(t, s)
			r.until("no problem", func(b manifest.Batch) bool { return podsOf(b) == "s=2" && len(b.Problems) == 0 })
		})
	}
}

// TestDir_Replaced replaces the directory by a new directory that lacks some manifests. It checks
// that the pods of these manifests are removed only after the new directory has not changed for
// settleDelay.
func TestDir_Replaced(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	for _, name := range []string{"a", "b", "c"} {
		d.write(name+".yaml", yaml(name))
	}
	var last manifest.Batch
	f := newFollower(NewDir(d.path, o), func(b manifest.Batch) { last = b })
	defer func() { f.close() }()
	now := time.Now().Add(time.Hour)
	complete := true
	check := func(after time.Duration, pods, problem string) {
		t.Helper()
		now = now.Add(after)
		f.nextScan = time.Time{}
		f.check(now)
		if got := podsOf(last); got != pods || last.IsComplete != complete || (problem == "") != (len(last.Problems) == 0) || !strings.Contains(problemsOf(last), problem) {
			t.Errorf("got %s, want pods %q, complete %v and problem %q (no problem if \"\")", show(last), pods, complete, problem)
		}
	}
	check(0, "a b c", "")
	if err := os.Rename(d.path, d.path+".old"); err != nil {
		t.Fatal(err)
	}
	d.mkdir()
	check(time.Hour, "a b c", "the directory is empty, and this is not the directory")
	d.write("b.yaml", yaml("b=2"))
	check(time.Hour, "b=2 a c", "2 manifests are missing")
	check(settleDelay-1, "b=2 a c", "2 manifests are missing")
	d.write("c.yaml", yaml("c=2"))
	check(settleDelay-1, "b=2 c=2 a", "1 manifest is missing")
	check(settleDelay-1, "b=2 c=2 a", "1 manifest is missing")
	if next := f.nextCheck().Sub(now); next > scanInterval {
		t.Errorf("time until the next check: got %v, want at most %v", next, scanInterval)
	}

	f.close() // podd restarts
	f = newFollower(NewDir(d.path, o), func(b manifest.Batch) { last = b })
	complete = false // the pod of a.yaml keeps running, but is not started
	check(0, "b=2 c=2", "1 manifest is missing")
	complete = true
	if err := os.Rename(d.path, d.path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.path+".old", d.path); err != nil {
		t.Fatal(err)
	}
	check(settleDelay, "a b c", "")
	if err := os.Rename(d.path, d.path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.path+".new", d.path); err != nil {
		t.Fatal(err)
	}
	check(settleDelay, "b=2 c=2 a", "1 manifest is missing")
	check(settleDelay, "b=2 c=2", "")
	d.remove("b.yaml")
	check(0, "c=2 b=2", "")
	check(removeDelay, "c=2", "")
}

// TestDir_Replaced_SameFiles checks that a new directory at the same path is accepted at once if no
// manifest is missing from it.
func TestDir_Replaced_SameFiles(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	d.write("a.yaml", yaml("a"))
	r := run(t, NewDir(d.path, o))
	r.untilPods("a")
	next := tree{t, d.path + ".new"}.mkdir()
	next.write("a.yaml", yaml("a=2"))
	next.write("b.yaml", yaml("b"))
	if err := unix.Renameat2(unix.AT_FDCWD, d.path, unix.AT_FDCWD, next.path, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	r.untilPods("a=2", "b")
	d.remove("a.yaml")
	r.untilPods("b")
	all, _ := r.batches()
	for _, b := range all {
		if len(b.Problems) > 0 {
			t.Errorf("got %s, want no problem", show(b))
		}
	}
}
