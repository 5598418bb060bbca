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
	"golang.org/x/sys/unix"

	"podd/runtime/safepath"
)

const uid = "8f7b2c1e-0000-4000-8000-0123456789ab"

// newTestRoot creates a cgroup for the test in every writable hierarchy. It removes the cgroup and
// its children when the test ends.
func newTestRoot(t *testing.T) (root string, points []string) {
	t.Helper()
	all, err := listMountPoints()
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
		t.Fatalf("no cgroup hierarchy of %v is writable", all)
	}
	return root, points
}

// removeForce removes a cgroup and all cgroups below it.
func removeForce(t *testing.T, dir string) {
	subs, _ := listChildren(dir)
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

func remaining(points []string, at string) (dirs []string) {
	for _, p := range points {
		if _, err := os.Stat(filepath.Join(p, at)); !errors.Is(err, fs.ErrNotExist) {
			dirs = append(dirs, filepath.Join(p, at))
		}
	}
	return dirs
}

func TestRemove(t *testing.T) {
	root, points := newTestRoot(t)
	parent := root + "/kubepods/burstable/pod" + uid
	mkdir(t, points, parent+"/container/nested/deep")
	mkdir(t, points, parent+"/other")
	mkdir(t, points, root+"/kubepods/burstable/podother")
	for range 2 { // the second removal finds no cgroup
		if _, err := remove(t.Context(), points, parent, driverCgroupfs, uid, nil); err != nil {
			t.Fatal(err)
		}
		if dirs := remaining(points, parent); len(dirs) > 0 {
			t.Fatalf("remaining cgroups: got %v, want none", dirs)
		}
	}
	if dirs := remaining(points, root+"/kubepods/burstable/podother"); len(dirs) != len(points) {
		t.Errorf("cgroups of another pod: got %v, want one in each of %v", dirs, points)
	}
	if _, err := remove(t.Context(), points, root+"/kubepods/burstable", driverCgroupfs, uid, nil); err == nil {
		t.Error("removing a cgroup that is not the pod's: got no error, want one")
	}
}

// TestRemove_Mounts checks that a removal does not cross a mount point: it removes no directory of
// another file system, no cgroup of another pod, and terminates no process of another pod.
func TestRemove_Mounts(t *testing.T) {
	root, points := newTestRoot(t)
	parent, other := root+"/kubepods/burstable/pod"+uid, root+"/kubepods/burstable/podother"
	mkdir(t, points, parent+"/container/deep")
	mkdir(t, points, other+"/container")
	outside := t.TempDir()
	if err := os.Mkdir(filepath.Join(outside, "kept"), 0o755); err != nil {
		t.Fatal(err)
	}
	process := exec.Command("sleep", "1000")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill() // fails only if the process was terminated, which the test has reported
		_ = process.Wait()
	})
	for _, source := range []string{outside, filepath.Join(points[0], other)} {
		at := filepath.Join(points[0], parent, "container/deep")
		if err := unix.Mount(source, at, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
		procs := filepath.Join(points[0], other, "container/cgroup.procs")
		if err := os.WriteFile(procs, []byte(strconv.Itoa(process.Process.Pid)), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := remove(t.Context(), points[:1], parent, driverCgroupfs, uid, func(pid int, _ func() bool) error {
			t.Errorf("process %d in the mount: got it terminated, want it running", pid)
			return nil
		})
		if !errors.Is(err, safepath.ErrMount) || !strings.Contains(err.Error(), at) {
			t.Errorf("mount of %s: got error %v, want error \"%v\" that names %s", source, err, safepath.ErrMount, at)
		}
		for _, kept := range []string{filepath.Join(outside, "kept"), filepath.Join(points[0], other, "container")} {
			if _, err := os.Stat(kept); err != nil {
				t.Errorf("directory in the mount: got error %v, want the directory kept", err)
			}
		}
		if err := unix.Unmount(at, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := remove(t.Context(), points, parent, driverCgroupfs, uid, nil); err != nil {
		t.Errorf("after the unmount: got error %v, want none", err)
	}
}

func TestRemove_Slice(t *testing.T) {
	root, points := newTestRoot(t)
	// The slices are at the top of the hierarchy, with a name that only this test uses.
	base := strings.TrimPrefix(strings.ReplaceAll(root, "-", "_"), "/")
	name := base + "-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
	mkdir(t, points, "/"+base+".slice/"+name+"/cri-containerd-x.scope")
	t.Cleanup(func() {
		for _, p := range points {
			removeForce(t, filepath.Join(p, base+".slice"))
		}
	})
	if _, err := remove(t.Context(), points, name, driverSystemd, uid, nil); err != nil {
		t.Fatal(err)
	}
	if dirs := remaining(points, "/"+base+".slice/"+name); len(dirs) > 0 {
		t.Errorf("remaining cgroups: got %v, want none", dirs)
	}
	if dirs := remaining(points, "/"+base+".slice"); len(dirs) != len(points) {
		t.Errorf("parent slices: got %v, want one in each of %v", dirs, points)
	}
}

// startProcess starts a process in a cgroup of the first hierarchy that accepts the process, and
// returns the cgroup. The parameter at is the path of the cgroup in the hierarchy. The process
// exits when end is called or the test ends.
func startProcess(t *testing.T, points []string, at string) (cgroup string, end func()) {
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
	t.Fatalf("no hierarchy of %v accepts a process", points)
	return "", nil
}

func TestRemovePod_AllPodPaths(t *testing.T) {
	root, points := newTestRoot(t)
	// The slices of this root are at the top of the hierarchy.
	top := "/" + strings.ReplaceAll(strings.TrimPrefix(root, "/"), "-", "_") + ".slice"
	t.Cleanup(func() {
		for _, p := range points {
			removeForce(t, filepath.Join(p, top))
		}
	})
	for _, dir := range classPaths(root) {
		at, _ := podPathInClass(dir, uid)
		other, _ := podPathInClass(dir, "other")
		mkdir(t, points, at+"/container")
		mkdir(t, points, other)
	}
	for _, want := range []bool{true, false} {
		if found, err := RemovePod(t.Context(), root, uid, nil); err != nil || found != want {
			t.Fatalf("got found %t, error %v; want found %t and no error", found, err, want)
		}
	}
	for _, dir := range classPaths(root) {
		at, _ := podPathInClass(dir, uid)
		if dirs := remaining(points, at); len(dirs) > 0 {
			t.Errorf("remaining cgroups: got %v, want none", dirs)
		}
		other, driver := podPathInClass(dir, "other")
		if dirs := remaining(points, other); len(dirs) != len(points) {
			t.Errorf("cgroups of the other pod: got %v, want one in each of %v", dirs, points)
		}
		if _, err := remove(t.Context(), points, other, driver, "other", nil); err != nil {
			t.Errorf("removing the other pod's cgroup: %v", err)
		}
	}
}

func TestRemove_Busy(t *testing.T) {
	root, points := newTestRoot(t)
	parent := root + "/kubepods/pod" + uid
	mkdir(t, points, parent+"/container")
	at, end := startProcess(t, points, parent+"/container")
	_, err := remove(t.Context(), points, parent, driverCgroupfs, uid, nil)
	var busy *busyError
	if !errors.As(err, &busy) {
		t.Fatalf("got error %v, want one of the type *busyError", err)
	}
	if diff := cmp.Diff(busyError{UID: uid, Path: at, Processes: 1}, *busy); diff != "" {
		t.Errorf("fields of the error (-want +got):\n%s", diff)
	}
	if dirs := remaining(points, parent); len(dirs) != 1 {
		t.Errorf("remaining cgroups: got %v, want only the cgroup with the process", dirs)
	}
	end()
	if _, err := remove(t.Context(), points, parent, driverCgroupfs, uid, nil); err != nil {
		t.Error(err)
	}
}

// TestRemovePod_TerminatesProcesses checks that RemovePod calls its TerminateFunc for
// processes that remain in the cgroup of the pod.
func TestRemovePod_TerminatesProcesses(t *testing.T) {
	root, points := newTestRoot(t)
	parent := root + "/kubepods/pod" + uid
	mkdir(t, points, parent+"/container")
	_, kill := startProcess(t, points, parent+"/container")
	defer kill()
	var killed []int
	killProcess := func(pid int, inCgroup func() bool) error {
		if !inCgroup() {
			t.Errorf("process %d passed to TerminateFunc: got inCgroup false, want true", pid)
		}
		killed = append(killed, pid)
		kill()
		return nil
	}
	var busy *busyError
	if _, err := RemovePod(t.Context(), root, uid, killProcess); !errors.As(err, &busy) {
		t.Errorf("got error %v, want one of the type *busyError", err)
	}
	if len(killed) != 1 {
		t.Errorf("killed processes: got %v, want one", killed)
	}
	if _, err := RemovePod(t.Context(), root, uid, killProcess); err != nil || len(remaining(points, parent)) > 0 {
		t.Errorf("after the process exited: got error %v and remaining cgroups %v; want no error and no cgroups", err, remaining(points, parent))
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
		t.Errorf("mount points (-want +got):\n%s", diff)
	}
}

func TestNewHierarchy(t *testing.T) {
	for name, c := range map[string]struct {
		mount mountinfo.Info
		want  Hierarchy
	}{
		"v1":             {mountinfo.Info{FSType: "cgroup", Options: "rw,nosuid", VFSOptions: "rw,cpu,cpuacct"}, Hierarchy{Controllers: []string{"cpu", "cpuacct"}}},
		"named":          {mountinfo.Info{FSType: "cgroup", Options: "rw", VFSOptions: "rw,xattr,name=systemd"}, Hierarchy{Controllers: []string{}}},
		"v2":             {mountinfo.Info{FSType: "cgroup2", Options: "rw", VFSOptions: "rw,nsdelegate"}, Hierarchy{IsV2: true}},
		"in a container": {mountinfo.Info{FSType: "cgroup", Options: "ro,nosuid", VFSOptions: "rw,pids"}, Hierarchy{Controllers: []string{"pids"}, IsReadOnly: true}},
	} {
		if diff := cmp.Diff(c.want, newHierarchy(&c.mount)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
