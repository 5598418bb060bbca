package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/sys/mountinfo"
)

const uid = "8f7b2c1e-0000-4000-8000-0123456789ab"

// newRoot makes a cgroup of the test's own in every hierarchy that lets it,
// and takes it away again with all below.
func newRoot(t *testing.T) (root string, points []string) {
	t.Helper()
	all, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	root = "/podd-test-" + strconv.Itoa(os.Getpid()) + "-" + strings.ToLower(filepath.Base(t.Name()))
	for _, p := range all {
		if os.Mkdir(filepath.Join(p, root), 0o755) == nil {
			points = append(points, p)
			t.Cleanup(func() { removeForce(t, filepath.Join(p, root)) })
		}
	}
	if len(points) == 0 {
		t.Fatalf("no cgroup hierarchy of %v can be written to", all)
	}
	return root, points
}

// removeForce takes away what a test made, whatever became of it.
func removeForce(t *testing.T, dir string) {
	subs, _ := children(dir)
	for _, sub := range subs {
		removeForce(t, sub)
	}
	if err := rmdir(dir); err != nil {
		t.Error(err)
	}
}

func mkdir(t *testing.T, points []string, at string) {
	t.Helper()
	for _, p := range points {
		if err := os.MkdirAll(filepath.Join(p, at), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func left(points []string, at string) (dirs []string) {
	for _, p := range points {
		if _, err := os.Stat(filepath.Join(p, at)); !errors.Is(err, fs.ErrNotExist) {
			dirs = append(dirs, filepath.Join(p, at))
		}
	}
	return dirs
}

func TestRemove(t *testing.T) {
	root, points := newRoot(t)
	parent := root + "/kubepods/burstable/pod" + uid
	mkdir(t, points, parent+"/container/nested/deep")
	mkdir(t, points, parent+"/other")
	mkdir(t, points, root+"/kubepods/burstable/podother")
	for range 2 { // already gone is success
		if err := Remove(t.Context(), parent, Cgroupfs, uid); err != nil {
			t.Fatal(err)
		}
		if dirs := left(points, parent); len(dirs) > 0 {
			t.Fatalf("left: %v", dirs)
		}
	}
	if dirs := left(points, root+"/kubepods/burstable/podother"); len(dirs) != len(points) {
		t.Errorf("another pod's cgroups are gone; left: %v", dirs)
	}
	if err := Remove(t.Context(), root+"/kubepods/burstable", Cgroupfs, uid); err == nil {
		t.Error("removed what is not the pod's cgroup")
	}
}

func TestRemoveOfASlice(t *testing.T) {
	root, points := newRoot(t)
	// The slices lie at the top; the test keeps to its own name.
	base := strings.TrimPrefix(strings.ReplaceAll(root, "-", "_"), "/")
	name := base + "-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
	mkdir(t, points, "/"+base+".slice/"+name+"/cri-containerd-x.scope")
	t.Cleanup(func() {
		for _, p := range points {
			removeForce(t, filepath.Join(p, base+".slice"))
		}
	})
	if err := Remove(t.Context(), name, Systemd, uid); err != nil {
		t.Fatal(err)
	}
	if dirs := left(points, "/"+base+".slice/"+name); len(dirs) > 0 {
		t.Errorf("left: %v", dirs)
	}
	if dirs := left(points, "/"+base+".slice"); len(dirs) != len(points) {
		t.Errorf("the parent slice is gone")
	}
}

// blocked starts a process that ends when its input does, inside a cgroup of
// the first hierarchy that takes it.
func blocked(t *testing.T, points []string, at string) (cgroup string, end func()) {
	t.Helper()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			in.Close()
			cmd.Wait()
		}
	}
	t.Cleanup(end)
	for _, p := range points {
		cgroup = filepath.Join(p, at)
		if os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0) == nil {
			return cgroup, end
		}
	}
	t.Fatalf("no hierarchy of %v takes a process", points)
	return "", nil
}

func TestRemovePodWhereverItIs(t *testing.T) {
	root, points := newRoot(t)
	// The slices of this root lie at the top.
	top := "/" + strings.ReplaceAll(strings.TrimPrefix(root, "/"), "-", "_") + ".slice"
	t.Cleanup(func() {
		for _, p := range points {
			removeForce(t, filepath.Join(p, top))
		}
	})
	for _, dir := range classes(root) {
		at, _ := inClass(dir, uid)
		other, _ := inClass(dir, "other")
		mkdir(t, points, at+"/container")
		mkdir(t, points, other)
	}
	if err := RemovePod(t.Context(), root, uid, nil); err != nil {
		t.Fatal(err)
	}
	for _, dir := range classes(root) {
		at, _ := inClass(dir, uid)
		if dirs := left(points, at); len(dirs) > 0 {
			t.Errorf("left: %v", dirs)
		}
		other, driver := inClass(dir, "other")
		if dirs := left(points, other); len(dirs) != len(points) {
			t.Errorf("left of the other pod: %v", dirs)
		}
		if err := Remove(t.Context(), other, driver, "other"); err != nil {
			t.Errorf("Remove does not take what inClass gave: %v", err)
		}
	}
}

func TestRemoveKillsNothing(t *testing.T) {
	root, points := newRoot(t)
	parent := root + "/kubepods/pod" + uid
	mkdir(t, points, parent+"/container")
	at, end := blocked(t, points, parent+"/container")
	err := Remove(t.Context(), parent, Cgroupfs, uid)
	var busy *BusyError
	if !errors.As(err, &busy) {
		t.Fatalf("got %v, want a *BusyError", err)
	}
	if diff := cmp.Diff(BusyError{UID: uid, Path: at, Processes: 1}, *busy); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if dirs := left(points, parent); len(dirs) != 1 {
		t.Errorf("left %v, want only the one in use", dirs)
	}
	end()
	if err := Remove(t.Context(), parent, Cgroupfs, uid); err != nil {
		t.Error(err)
	}
}

// TestRemovePodEndsWhatIsLeft: what the runtime lost track of goes with the pod.
func TestRemovePodEndsWhatIsLeft(t *testing.T) {
	root, points := newRoot(t)
	parent := root + "/kubepods/pod" + uid
	mkdir(t, points, parent+"/container")
	_, end := blocked(t, points, parent+"/container")
	defer end()
	var ended []int
	endProcess := func(pid int, still func() bool) error {
		if !still() {
			t.Errorf("process %d is not there", pid)
		}
		ended = append(ended, pid)
		end()
		return nil
	}
	var busy *BusyError
	if err := RemovePod(t.Context(), root, uid, endProcess); !errors.As(err, &busy) {
		t.Errorf("got %v, want a *BusyError", err)
	}
	if len(ended) != 1 {
		t.Errorf("ended %v, want the one process", ended)
	}
	if err := RemovePod(t.Context(), root, uid, endProcess); err != nil || len(left(points, parent)) > 0 {
		t.Errorf("then: %v, left %v", err, left(points, parent))
	}
}

func TestMountPoints(t *testing.T) {
	got := mountPoints([]*mountinfo.Info{
		{Major: 0, Minor: 30, Root: "/machine/x", Mountpoint: "/c"},
		{Major: 0, Minor: 30, Root: "/", Mountpoint: "/chroot/sys/fs/cgroup/memory"},
		{Major: 0, Minor: 30, Root: "/", Mountpoint: "/sys/fs/cgroup/memory"},
		{Major: 0, Minor: 31, Root: "/", Mountpoint: "/sys/fs/cgroup/unified"},
	})
	if diff := cmp.Diff([]string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
