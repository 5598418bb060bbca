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

func part(volume, path string) render.SubPath {
	return render.SubPath{Volume: volume, Path: path, Text: path, Make: true}
}

// boundAt is where a part of a volume is mounted.
func boundAt(t *testing.T, d Dir, pod *manifest.Pod, s render.SubPath) (string, error) {
	t.Helper()
	volumes, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	paths, err := d.BindSubPaths(t.Context(), pod, "main", volumes, []render.SubPath{s})
	return paths[s.Mount], err
}

func TestSubPathIsMadeAndMounted(t *testing.T) {
	d := newDir(t)
	pod := podOf(empty("data", "", ""), empty("fast", v1.StorageMediumMemory, ""))
	gid := int64(4321)
	pod.Spec.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &gid}
	for name, mode := range map[string]uint32{"data": 0o2777, "fast": 0o3777} {
		path, err := boundAt(t, d, pod, part(name, "a/b"))
		must(t, err)
		if want := filepath.Join(d.Root, uid, "volume-subpaths", name, "main", "0"); path != want {
			t.Errorf("it is at %s, want %s", path, want)
		}
		for _, path := range []string{path, filepath.Join(d.Root, uid, "volumes", emptyDirPlugin, name, "a")} {
			var st unix.Stat_t
			must(t, unix.Stat(path, &st))
			if st.Mode&0o7777 != mode || st.Gid != 4321 {
				t.Errorf("%s has mode %o and group %d, want %o", path, st.Mode&0o7777, st.Gid, mode)
			}
		}
		must(t, os.WriteFile(filepath.Join(path, "f"), []byte("x"), 0o600))
		if _, err := os.Stat(filepath.Join(d.Root, uid, "volumes", emptyDirPlugin, name, "a/b/f")); err != nil {
			t.Error(err)
		}
		before := tree(t, d.Root)
		_, err = boundAt(t, d, pod, part(name, "a/b"))
		must(t, err)
		if after := tree(t, d.Root); before != after {
			t.Errorf("the second time changed\n%sto\n%s", before, after)
		}
	}
	must(t, d.Release(t.Context(), uid))
	if n := mountCount(t, d.Root); n > 0 {
		t.Errorf("%d mounts are left", n)
	}
	must(t, d.Remove(t.Context(), uid))
}

// TestSubPathFollowsTheVolume checks that the next start mounts the present file, even if it
// has another type.
func TestSubPathFollowsTheVolume(t *testing.T) {
	d := newDir(t)
	srv := t.TempDir()
	pod := podOf(host("data", srv, v1.HostPathDirectory))
	current := filepath.Join(srv, "current")
	for _, version := range []func() error{
		func() error { return os.WriteFile(current, []byte("1"), 0o600) },
		func() error { return os.WriteFile(current, []byte("2"), 0o600) },
		func() error { return os.Mkdir(current, 0o700) },
		func() error { return unix.Mkfifo(current, 0o600) },
	} {
		must(t, os.RemoveAll(current))
		must(t, version())
		path, err := boundAt(t, d, pod, part("data", "current"))
		must(t, err)
		want, err := os.Lstat(current)
		must(t, err)
		if have, err := os.Lstat(path); err != nil || !os.SameFile(want, have) {
			t.Errorf("%s is not %s: %v", path, current, err)
		}
		if n := mountCount(t, d.Root); n != 1 {
			t.Errorf("%d mounts", n)
		}
	}
	must(t, d.Remove(t.Context(), uid))
	if _, err := os.Lstat(current); err != nil {
		t.Error(err)
	}
}

func TestSubPathErrors(t *testing.T) {
	srv := t.TempDir()
	file := filepath.Join(srv, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for want, test := range map[string]struct {
		path string
		sub  render.SubPath
	}{
		"the volume is a file": {file, part("data", "a")},
		"the volume's host path " + srv + "/gone does not exist; create it, or use type DirectoryOrCreate": {srv + "/gone", part("data", "a")},
		"the volume does not contain this file": {srv, render.SubPath{Volume: "data", Path: "hunter2", Text: "$(X)"}},
		"not a directory":                       {srv, part("data", "file/a")},
		"file name too long":                    {srv, part("data", strings.Repeat("a", 300))},
		"not be a directory name; it ":          {srv, part("data", "a")},
	} {
		d := newDir(t)
		pod := podOf(host("data", test.path, v1.HostPathUnset))
		if strings.HasPrefix(want, "not be") {
			pod.UID = "../x"
		}
		_, err := d.BindSubPaths(t.Context(), pod, "main", map[string]string{"data": test.path}, []render.SubPath{test.sub})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("want %s: %v", want, err)
		} else if !strings.Contains(err.Error(), want) && !strings.HasPrefix(want, "not be") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestSubPathCopiesNoUnmount checks that mounts in the volume are visible in the subPath, and
// that unmounting the subPath does not unmount the originals.
func TestSubPathCopiesNoUnmount(t *testing.T) {
	remote := func(d Dir) error {
		mounts, err := d.mountsBelow(uid)
		if err != nil {
			return err
		}
		return d.unmountRemote(t.Context(), mounts[len(mounts)-1])
	}
	for name, end := range map[string]func(Dir) error{
		"of this machine": func(d Dir) error { return d.Remove(t.Context(), uid) },
		"of a server":     remote,
		"of a server, without umount": func(d Dir) error {
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
			pod := podOf(host("data", top, v1.HostPathDirectory))
			at, err := boundAt(t, d, pod, part("data", "a"))
			must(t, err)
			must(t, unix.Mount("tmpfs", filepath.Join(top, "a", "sub"), "tmpfs", 0, ""))
			if n := mountCount(t, at); n != 2 {
				t.Fatalf("%d mounts; the part has none of what was mounted later", n)
			}
			must(t, end(d))
			if n := mountCount(t, d.Root); n > 0 {
				t.Errorf("%d mounts are left", n)
			}
			if n := mountCount(t, filepath.Join(top, "a")); n != 1 {
				t.Errorf("the volume has %d mounts, want its own", n)
			}
		})
	}
}
