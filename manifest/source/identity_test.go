package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podd/manifest"
)

// TestDir_EmptyDirectory checks that an empty directory removes no pods unless it is
// the one that had their manifests, while podd runs and after a restart.
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
		problem       string // "" means that the pods end
	}{
		"files removed":              {nothing, func(_ *testing.T, d tree) { d.remove("a.yaml") }, ""},
		"files removed from a mount": {mount, func(_ *testing.T, d tree) { d.remove("a.yaml") }, ""},
		"unmounted":                  {mount, unmount, "the file system with its manifests is not mounted"},
		"bind mount gone": {func(t *testing.T, d tree) {
			if err := unix.Mount(t.TempDir(), d.path, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(d.path, unix.MNT_DETACH) })
		}, unmount, "the file system with its manifests is not mounted"},
		"another filesystem mounted": {mount, func(t *testing.T, d tree) { unmount(t, d); mount(t, d) }, "it is not the directory"},
		"mounted over":               {nothing, mount, "it is not the directory"},
		"made anew": {nothing, func(t *testing.T, d tree) {
			// podd must not list the directory between the removal of its file and its own.
			if err := os.Rename(d.path, d.path+".old"); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(d.path + ".old"); err != nil {
				t.Fatal(err)
			}
			d.mkdir()
		}, "it is not the directory"},
		"renamed and made anew": {nothing, func(t *testing.T, d tree) {
			if err := os.Rename(d.path, d.path+".old"); err != nil {
				t.Fatal(err)
			}
			d.mkdir()
		}, "it is not the directory"},
	} {
		for _, running := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", seen", false: ", unseen"}[running], func(t *testing.T) {
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
				if err := s.AcceptEmpty(t.Context()); !errors.Is(err, ErrNothingMissing) {
					t.Errorf("accepted twice: got %v", err)
				}
				r.stop()
				r = run(t, NewDir(d.path, o))
				if b := r.untilPods(); len(b.Problems) > 0 {
					t.Errorf("after a restart: got %s", show(b))
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
	there := tree{t, filepath.Join(t.TempDir(), "fs")}.mkdir()
	there.write("a.yaml", yaml("a"))
	mount := func() {
		t.Helper()
		if err := unix.Mount(there.path, d.path, "", unix.MS_BIND, ""); err != nil {
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
		there.write("b.yaml", yaml("b"))
		r.untilPods("a", "b")
		there.remove("b.yaml")
		r.untilPods("a")
		r.stop()
	}
}

// TestDir_UnmountedBeforeStore checks that an empty directory is not trusted if podd recorded a
// mount there but the host stopped before the content of a file was stored.
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
	c := openCache(o.Cache, d.path)
	c.drop(filepath.Join(d.path, "a.yaml"))
	c.close()
	if err := unix.Unmount(d.path, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	s := NewDir(d.path, o)
	r = run(t, s)
	r.until("the missing mount is reported", func(b manifest.Batch) bool {
		return !b.Complete && strings.Contains(problemsOf(b), "not mounted")
	})
	if err := s.AcceptEmpty(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.until("the directory is accepted", func(b manifest.Batch) bool { return b.Complete && len(b.Problems) == 0 })
}

// TestDir_UnmountedEmpty checks that nothing is missing from a mount that was emptied
// before it was unmounted.
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
	r.until("a complete batch", func(b manifest.Batch) bool { return b.Complete && len(b.Problems) == 0 })
}

// TestDir_UnknownIdentity checks that an index without the identity of the directory makes
// an empty directory wait until a user accepts it.
func TestDir_UnknownIdentity(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	d.write("a.yaml", yaml("a"))
	r := run(t, NewDir(d.path, o))
	r.untilPods("a")
	r.stop()
	c := openCache(o.Cache, d.path)
	c.manifestDir = nil
	c.mustWriteIndex = true
	c.notify(c.wake)
	c.close()
	d.remove("a.yaml")
	s := NewDir(d.path, o)
	r = run(t, s)
	r.untilProblem("did not record", "a")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.AcceptEmpty(ctx); err != nil {
		t.Fatal(err)
	}
	r.untilPods()
}

// TestIdentity checks that changes which a reboot may cause do not change the identity.
func TestIdentity(t *testing.T) {
	a := identity{Inode: 7, Born: 9, Filesystem: "fs", Device: 3, Boot: "one"}
	mounted := a
	mounted.Mount = true
	for name, c := range map[string]struct {
		a      identity
		change func(*identity)
		want   bool
	}{
		"itself":                            {a, func(*identity) {}, true},
		"device, after a reboot":            {a, func(id *identity) { id.Device, id.Boot = 4, "two" }, true},
		"device, in one boot":               {a, func(id *identity) { id.Device = 4 }, false},
		"inode":                             {a, func(id *identity) { id.Inode = 8 }, false},
		"inode given again":                 {a, func(id *identity) { id.Born = 10 }, false},
		"no birth time":                     {a, func(id *identity) { id.Born = 0 }, true},
		"mount":                             {a, func(id *identity) { id.Mount = true }, false},
		"filesystem of a directory":         {a, func(id *identity) { id.Filesystem, id.Device, id.Boot = "other", 4, "two" }, true},
		"filesystem of a mount":             {mounted, func(id *identity) { id.Filesystem, id.Device, id.Boot = "other", 4, "two" }, false},
		"mount on another device, rebooted": {mounted, func(id *identity) { id.Device, id.Boot = 4, "two" }, true},
	} {
		b := c.a
		c.change(&b)
		if got := c.a.matches(b); got != c.want || b.matches(c.a) != got {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
