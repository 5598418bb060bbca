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

// TestDir_EmptyDirectory checks that an empty directory removes pods only if it is the directory
// that contained their manifests. It checks this while podd runs and after a restart.
func TestDir_EmptyDirectory(t *testing.T) {
	mount := func(t *testing.T, d tree) {
		t.Helper()
		if err := unix.Mount("podd-test", d.path, "tmpfs", 0, "size=1m,mode=755"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(d.path, unix.MNT_DETACH) })
	}
	unmount := func(t *testing.T, d tree) {
		t.Helper()
		if err := unix.Unmount(d.path, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(*testing.T, tree) {}
	for name, c := range map[string]struct {
		before, empty func(*testing.T, tree)
		problem       string // "" means that the pods are removed
	}{
		"files removed":              {nothing, func(_ *testing.T, d tree) { d.remove("a.yaml") }, ""},
		"files removed from a mount": {mount, func(_ *testing.T, d tree) { d.remove("a.yaml") }, ""},
		"unmounted":                  {mount, unmount, "the file system with the manifests is not mounted"},
		"bind mount unmounted": {func(t *testing.T, d tree) {
			if err := unix.Mount(t.TempDir(), d.path, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(d.path, unix.MNT_DETACH) })
		}, unmount, "the file system with the manifests is not mounted"},
		"another filesystem mounted": {mount, func(t *testing.T, d tree) { unmount(t, d); mount(t, d) }, "this is not the directory"},
		"mounted over":               {nothing, mount, "this is not the directory"},
		"created again": {nothing, func(t *testing.T, d tree) {
			// Renaming first prevents a listing between the removal of the file and of the
			// directory.
			if err := os.Rename(d.path, d.path+".old"); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(d.path + ".old"); err != nil {
				t.Fatal(err)
			}
			d.mkdir()
		}, "this is not the directory"},
		"renamed and created again": {nothing, func(t *testing.T, d tree) {
			if err := os.Rename(d.path, d.path+".old"); err != nil {
				t.Fatal(err)
			}
			d.mkdir()
		}, "this is not the directory"},
	} {
		for _, running := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", podd runs", false: ", podd is stopped"}[running], func(t *testing.T) {
				d, o := newTree(t), testOptions(t)
				o.CheckFrequency = 20 * time.Millisecond
				c.before(t, d)
				d.write("a.yaml", yaml("a"))
				r := run(t, NewDir(d.path, o))
				r.untilPods("a")
				if !running {
					r.stop()
				}
				c.empty(t, d)
				s := NewDir(d.path, o)
				if !running {
					r = run(t, s)
				}
				if c.problem == "" {
					r.untilPods()
					return
				}
				r.untilProblem(c.problem, "a")
				if running {
					r.stop()
					r = run(t, s)
					r.untilProblem(c.problem, "a")
				}
				if err := s.AcceptEmpty(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.untilPods()
				if err := s.AcceptEmpty(t.Context()); !errors.Is(err, ErrNothingToAccept) {
					t.Errorf("second AcceptEmpty: got %v, want ErrNothingMissing", err)
				}
				r.stop()
				r = run(t, NewDir(d.path, o))
				if b := r.untilPods(); len(b.Problems) > 0 {
					t.Errorf("after a restart: got %s, want no problems", show(b))
				}
				d.write("b.yaml", yaml("b"))
				r.untilPods("b")
			})
		}
	}
}

// TestDir_LateMount checks manifests on a mount that is missing when podd starts, and is
// mounted and unmounted later.
func TestDir_LateMount(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	filesystem := tree{t, filepath.Join(t.TempDir(), "fs")}.mkdir()
	filesystem.write("a.yaml", yaml("a"))
	mount := func() {
		t.Helper()
		if err := unix.Mount(filesystem.path, d.path, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = unix.Unmount(d.path, unix.MNT_DETACH) })
	mount()
	r := run(t, NewDir(d.path, o))
	r.untilPods("a")
	r.stop()
	for range 2 {
		if err := unix.Unmount(d.path, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		r = run(t, NewDir(d.path, o))
		r.untilProblem("not mounted", "a")
		mount()
		if b := r.untilPods("a"); strings.Contains(problemsOf(b), "not mounted") {
			r.until("no problem", func(b manifest.Batch) bool { return len(b.Problems) == 0 })
		}
		filesystem.write("b.yaml", yaml("b"))
		r.untilPods("a", "b")
		filesystem.remove("b.yaml")
		r.untilPods("a")
		r.stop()
	}
}

// TestDir_UnmountedBeforeStore checks that an empty directory is not a complete listing if podd has
// recorded a mount at the directory. The cache contains no manifest, as if the host had stopped before
// podd could write one.
func TestDir_UnmountedBeforeStore(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	if err := unix.Mount("podd-test", d.path, "tmpfs", 0, "size=1m,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(d.path, unix.MNT_DETACH) })
	d.write("a.yaml", yaml("a"))
	r := run(t, NewDir(d.path, o))
	r.untilPods("a")
	r.stop()
	c := openCache(o.CacheDir, d.path)
	c.removeEntry(filepath.Join(d.path, "a.yaml"))
	c.close()
	if err := unix.Unmount(d.path, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	s := NewDir(d.path, o)
	r = run(t, s)
	r.until("a problem about the missing mount", func(b manifest.Batch) bool {
		return !b.IsComplete && strings.Contains(problemsOf(b), "not mounted")
	})
	if err := s.AcceptEmpty(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.until("a complete listing", func(b manifest.Batch) bool { return b.IsComplete && len(b.Problems) == 0 })
}

// TestDir_UnmountedEmpty checks that an empty directory is a complete listing if the mount at the
// directory contained no manifests before it was unmounted.
func TestDir_UnmountedEmpty(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	if err := unix.Mount("podd-test", d.path, "tmpfs", 0, "size=1m,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(d.path, unix.MNT_DETACH) })
	d.write("a.yaml", yaml("a"))
	r := run(t, NewDir(d.path, o))
	r.untilPods("a")
	d.remove("a.yaml")
	r.untilPods()
	r.stop()
	if err := unix.Unmount(d.path, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	r = run(t, NewDir(d.path, o))
	r.until("a complete batch", func(b manifest.Batch) bool { return b.IsComplete && len(b.Problems) == 0 })
}

// TestDir_UnknownIdentity checks that, if the index does not contain the identity of the
// directory, an empty directory removes no pods until a user accepts it.
func TestDir_UnknownIdentity(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	d.write("a.yaml", yaml("a"))
	r := run(t, NewDir(d.path, o))
	r.untilPods("a")
	r.stop()
	c := openCache(o.CacheDir, d.path)
	c.manifestDir = nil
	c.mustWriteIndex = true
	c.notify(c.wake)
	c.close()
	d.remove("a.yaml")
	s := NewDir(d.path, o)
	r = run(t, s)
	r.untilProblem("has not recorded", "a")
	if err := s.AcceptEmpty(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.untilPods()
}

// TestIdentity checks which identities match: a reboot can change some fields of the identity of a
// directory.
func TestIdentity(t *testing.T) {
	a := identity{Inode: 7, BornUnixNano: 9, Filesystem: "fs", Device: 3, BootID: "one"}
	mounted := a
	mounted.IsMount = true
	for name, c := range map[string]struct {
		a      identity
		change func(*identity)
		want   bool
	}{
		"the same":                          {a, func(*identity) {}, true},
		"device, after a reboot":            {a, func(id *identity) { id.Device, id.BootID = 4, "two" }, true},
		"device, in one boot":               {a, func(id *identity) { id.Device = 4 }, false},
		"inode":                             {a, func(id *identity) { id.Inode = 8 }, false},
		"inode number reused":               {a, func(id *identity) { id.BornUnixNano = 10 }, false},
		"no birth time":                     {a, func(id *identity) { id.BornUnixNano = 0 }, true},
		"mount":                             {a, func(id *identity) { id.IsMount = true }, false},
		"filesystem of a directory":         {a, func(id *identity) { id.Filesystem, id.Device, id.BootID = "other", 4, "two" }, true},
		"filesystem of a mount":             {mounted, func(id *identity) { id.Filesystem, id.Device, id.BootID = "other", 4, "two" }, false},
		"mount on another device, rebooted": {mounted, func(id *identity) { id.Device, id.BootID = 4, "two" }, true},
	} {
		b := c.a
		c.change(&b)
		if got := c.a.mayMatch(b); got != c.want || b.mayMatch(c.a) != got {
			t.Errorf("%s: mayMatch: got %t, with the identities swapped %t; want %t for both", name, got, b.mayMatch(c.a), c.want)
		}
	}
}
