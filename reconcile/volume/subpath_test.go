package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/render"
)

// newSubPath returns a subPath that is created if it does not exist.
func newSubPath(volume, path string) render.SubPath {
	return render.SubPath{Volume: volume, Path: path, ManifestText: path, CreateMissing: true}
}

// bindOne prepares the pod, bind-mounts s for the container "main", and returns the path of the
// mount.
func bindOne(t *testing.T, d Dir, pod *manifest.Pod, s render.SubPath) (string, error) {
	t.Helper()
	volumes, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	paths, err := d.BindSubPaths(t.Context(), pod, "main", volumes, []render.SubPath{s})
	return paths[s.MountIndex], err
}

// TestSubPath checks that a subPath is created with the mode and group of the volume and
// bind-mounted, and that a second call changes nothing.
func TestSubPath(t *testing.T) {
	d := newDir(t)
	pod := newPod(emptyDirVolume("data", "", ""), emptyDirVolume("fast", v1.StorageMediumMemory, ""))
	gid := int64(4321)
	pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &gid}
	for name, mode := range map[string]uint32{"data": 0o2777, "fast": 0o3777} {
		path, err := bindOne(t, d, pod, newSubPath(name, "a/b"))
		must(t, err)
		if want := filepath.Join(d.Root, uid, "volume-subpaths", name, "main", "0"); path != want {
			t.Errorf("volume %s: got path %s, want %s", name, path, want)
		}
		for _, path := range []string{path, filepath.Join(d.Root, uid, "volumes", emptyDirPlugin, name, "a")} {
			var st unix.Stat_t
			must(t, unix.Stat(path, &st))
			if st.Mode&0o7777 != mode || st.Gid != 4321 {
				t.Errorf("%s: got mode %o and group %d; want mode %o and group 4321", path, st.Mode&0o7777, st.Gid, mode)
			}
		}
		must(t, os.WriteFile(filepath.Join(path, "f"), []byte("x"), 0o600))
		if _, err := os.Stat(filepath.Join(d.Root, uid, "volumes", emptyDirPlugin, name, "a/b/f")); err != nil {
			t.Errorf("volume %s: file of the subPath in the volume: got error %v, want none", name, err)
		}
		before := listTree(t, d.Root)
		_, err = bindOne(t, d, pod, newSubPath(name, "a/b"))
		must(t, err)
		if after := listTree(t, d.Root); before != after {
			t.Errorf("volume %s: the second call changed files: before\n%safter\n%s", name, before, after)
		}
	}
	must(t, d.Release(t.Context(), uid))
	if n := mountCount(t, d.Root); n > 0 {
		t.Errorf("after Release: got %d mounts, want 0", n)
	}
	must(t, d.Remove(t.Context(), uid))
}

// TestSubPath_Replaced checks that each start of a container mounts the current file at the path,
// even if the file was replaced by one of another type.
func TestSubPath_Replaced(t *testing.T) {
	d := newDir(t)
	srv := t.TempDir()
	pod := newPod(hostPathVolume("data", srv, v1.HostPathDirectory))
	current := filepath.Join(srv, "current")
	for _, version := range []func() error{
		func() error { return os.WriteFile(current, []byte("1"), 0o600) },
		func() error { return os.WriteFile(current, []byte("2"), 0o600) },
		func() error { return os.Mkdir(current, 0o700) },
		func() error { return unix.Mkfifo(current, 0o600) },
	} {
		must(t, os.RemoveAll(current))
		must(t, version())
		path, err := bindOne(t, d, pod, newSubPath("data", "current"))
		must(t, err)
		want, err := os.Lstat(current)
		must(t, err)
		if got, err := os.Lstat(path); err != nil || !os.SameFile(want, got) {
			t.Errorf("mount at %s: got another file or error %v, want the file %s", path, err, current)
		}
		if n := mountCount(t, d.Root); n != 1 {
			t.Errorf("got %d mounts, want 1", n)
		}
	}
	must(t, d.Remove(t.Context(), uid))
	if _, err := os.Lstat(current); err != nil {
		t.Errorf("file in the volume after Remove: got error %v, want the file kept", err)
	}
}

// TestSubPath_Errors checks that errors do not contain a path that may be the value of a variable.
func TestSubPath_Errors(t *testing.T) {
	srv := t.TempDir()
	file := filepath.Join(srv, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for want, test := range map[string]struct {
		path string
		sub  render.SubPath
	}{
		"the volume is a file": {file, newSubPath("data", "a")},
		"the volume's host path " + srv + "/gone does not exist; create it, or use type DirectoryOrCreate": {srv + "/gone", newSubPath("data", "a")},
		"the volume does not contain this file": {srv, render.SubPath{Volume: "data", Path: "hunter2", ManifestText: "$(X)"}},
		"not a directory":                       {srv, newSubPath("data", "file/a")},
		"file name too long":                    {srv, newSubPath("data", strings.Repeat("a", 300))},
		"not be a directory name; it ":          {srv, newSubPath("data", "a")},
	} {
		d := newDir(t)
		pod := newPod(hostPathVolume("data", test.path, v1.HostPathUnset))
		if strings.HasPrefix(want, "not be") {
			pod.UID = "../x"
		}
		_, err := d.BindSubPaths(t.Context(), pod, "main", map[string]string{"data": test.path}, []render.SubPath{test.sub})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got error %v, want %q without the path", err, want)
		} else if !strings.Contains(err.Error(), want) && !strings.HasPrefix(want, "not be") {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// TestSubPath_NestedMount checks that a mount in the volume is visible in the subPath, and that
// unmounting the subPath does not unmount the original.
func TestSubPath_NestedMount(t *testing.T) {
	remote := func(d Dir) error {
		mounts, err := d.mountsBelow(uid)
		if err != nil {
			return err
		}
		return d.unmountRemote(t.Context(), mounts[len(mounts)-1])
	}
	for name, unmount := range map[string]func(Dir) error{
		"local":  func(d Dir) error { return d.Remove(t.Context(), uid) },
		"remote": remote,
		"remote, without the program umount": func(d Dir) error {
			defer func(dirs []string) { programDirs = dirs }(programDirs)
			programDirs = nil
			return remote(d)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDir(t)
			top := t.TempDir()
			must(t, unix.Mount("tmpfs", top, "tmpfs", 0, ""))
			t.Cleanup(func() { unix.Unmount(top, unix.MNT_DETACH) })
			must(t, unix.Mount("", top, "", unix.MS_SHARED, ""))
			must(t, os.MkdirAll(filepath.Join(top, "a", "sub"), 0o755))
			pod := newPod(hostPathVolume("data", top, v1.HostPathDirectory))
			at, err := bindOne(t, d, pod, newSubPath("data", "a"))
			must(t, err)
			must(t, unix.Mount("tmpfs", filepath.Join(top, "a", "sub"), "tmpfs", 0, ""))
			if n := mountCount(t, at); n != 2 {
				t.Fatalf("subPath after a mount in the volume: got %d mounts, want 2", n)
			}
			must(t, unmount(d))
			if n := mountCount(t, d.Root); n > 0 {
				t.Errorf("after unmounting: got %d mounts in Root, want 0", n)
			}
			if n := mountCount(t, filepath.Join(top, "a")); n != 1 {
				t.Errorf("after unmounting: got %d mounts in the volume, want 1", n)
			}
		})
	}
}
