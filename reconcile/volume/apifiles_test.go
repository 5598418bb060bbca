package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"podd/reconcile/render"
	"podd/runtime/safepath"
)

// textFiles returns files with mode 0644. pairs contains a path and a text for each file.
func textFiles(pairs ...string) map[string]render.File {
	files := map[string]render.File{}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = render.File{Data: []byte(pairs[i+1]), Mode: 0o644}
	}
	return files
}

func constantFiles(files map[string]render.File) filesFunc {
	return func(*v1.Volume) (map[string]render.File, error) { return files, nil }
}

func secretVolume(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}}
}

func configVolume(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}}
}

// readFiles returns the files in the volume at path vol, without entries with names that begin with "..".
func readFiles(t interface{ Fatal(...any) }, vol string) map[string]render.File {
	files := map[string]render.File{}
	var visit func(at string)
	visit = func(at string) {
		entries, err := os.ReadDir(filepath.Join(vol, at))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := path.Join(at, e.Name())
			if at == "" && strings.HasPrefix(e.Name(), "..") {
				continue
			}
			info, err := os.Stat(filepath.Join(vol, name))
			if err != nil {
				t.Fatal(err)
			}
			if info.IsDir() {
				visit(name)
				continue
			}
			data, err := os.ReadFile(filepath.Join(vol, name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = render.File{Data: data, Mode: uint32(info.Mode().Perm())}
		}
	}
	visit("")
	return files
}

// TestPodFiles checks that a volume contains the desired files after they changed, and that an open
// file stays readable. A second Prepare with the same files changes nothing.
func TestPodFiles(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	for _, v := range []v1.Volume{configVolume("v"), secretVolume("v")} {
		d, pod := newDir(t), newPod(v)
		first := textFiles("a", "1", "sub/b", "2", "gone", "3")
		first["exec"] = render.File{Data: []byte("#!"), Mode: 0o750}
		paths, err := d.Prepare(t.Context(), pod, constantFiles(first))
		must(t, err)
		vol := paths["v"]
		if diff := cmp.Diff(first, readFiles(t, vol)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		before, link := listTree(t, d.Root), readlink(t, vol)
		_, err = d.Prepare(t.Context(), pod, constantFiles(first))
		must(t, err)
		if diff := cmp.Diff(before, listTree(t, d.Root)); diff != "" {
			t.Errorf("the second Prepare changed files (-before +after):\n%s", diff)
		}
		// A program may have a file open while the files are replaced.
		open, err := os.Open(filepath.Join(vol, "a"))
		must(t, err)
		defer open.Close()
		second := textFiles("a", "one", "sub/c", "2")
		_, err = d.Prepare(t.Context(), pod, constantFiles(second))
		must(t, err)
		if diff := cmp.Diff(second, readFiles(t, vol)); diff != "" {
			t.Errorf("files after a change (-want +got):\n%s", diff)
		}
		if got := readlink(t, vol); got == link {
			t.Errorf("target of ..data after a change: got %s, want another directory", got)
		}
		names, err := os.ReadDir(vol)
		must(t, err)
		if len(names) != 4 { // ..data, its target, a, sub
			t.Errorf("entries of the volume: got %v, want ..data, its target, a and sub", names)
		}
		open.Close()
		must(t, d.Release(t.Context(), uid))
		must(t, d.Remove(t.Context(), uid))
		if left, _ := os.ReadDir(d.Root); len(left) > 0 || mountCount(t, d.Root) > 0 {
			t.Errorf("after Remove: got entries %v and %d mounts; want no entries and no mounts", left, mountCount(t, d.Root))
		}
	}
}

// TestPodFiles_Mounts checks that an update of the files of a volume does not cross a mount point in the
// volume.
func TestPodFiles_Mounts(t *testing.T) {
	for _, where := range []string{"old/mnt", "old", "..data_tmp/mnt", "b/mnt"} {
		t.Run(strings.ReplaceAll(where, "/", "_"), func(t *testing.T) {
			d, pod := newDir(t), newPod(configVolume("v"))
			paths, err := d.Prepare(t.Context(), pod, constantFiles(textFiles("a", "1")))
			must(t, err)
			outside, at := t.TempDir(), filepath.Join(paths["v"], where)
			kept := filepath.Join(outside, "kept")
			must(t, os.WriteFile(kept, nil, 0o600))
			must(t, os.MkdirAll(at, 0o755))
			bindMount(t, outside, at)
			files := textFiles("a", "2", "b", "3")
			if _, err := d.Prepare(t.Context(), pod, constantFiles(files)); !errors.Is(err, safepath.ErrMount) {
				t.Errorf("with a mount: got error %v, want %v", err, safepath.ErrMount)
			}
			if _, err := os.Stat(kept); err != nil {
				t.Errorf("file in the mount: got error %v, want the file kept", err)
			}
			must(t, unix.Unmount(at, 0))
			_, err = d.Prepare(t.Context(), pod, constantFiles(files))
			must(t, err)
			if diff := cmp.Diff(files, readFiles(t, paths["v"])); diff != "" {
				t.Errorf("files after the unmount (-want +got):\n%s", diff)
			}
		})
	}
}

func readlink(t *testing.T, vol string) string {
	t.Helper()
	link, err := os.Readlink(filepath.Join(vol, "..data"))
	must(t, err)
	return link
}

// TestPodFiles_Memory checks that all volumes except that of type configMapType are on a tmpfs. The
// parent directory of every volume must have mode 0700.
func TestPodFiles_Memory(t *testing.T) {
	d := newDir(t)
	d.MemoryVolumeLimit = 64 << 20
	pod := newPod(secretVolume("s"), configVolume("c"),
		v1.Volume{Name: "p", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}},
		v1.Volume{Name: "d", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{}}})
	paths, err := d.Prepare(t.Context(), pod, constantFiles(textFiles("k", "v")))
	must(t, err)
	for name, memory := range map[string]bool{"s": true, "p": true, "d": true, "c": false} {
		var st unix.Statfs_t
		must(t, unix.Statfs(paths[name], &st))
		if (int64(st.Type) == unix.TMPFS_MAGIC) != memory && name != "c" || mountCount(t, paths[name]) != map[bool]int{true: 1}[memory] {
			t.Errorf("volume %s: on a tmpfs: got %v, want %v", name, !memory, memory)
		}
		if size := int64(st.Blocks) * st.Bsize; memory && size != d.MemoryVolumeLimit {
			t.Errorf("volume %s: size of the tmpfs: got %d bytes, want %d", name, size, d.MemoryVolumeLimit)
		}
		info, err := os.Stat(filepath.Dir(paths[name]))
		must(t, err)
		if info.Mode().Perm() != 0o700 {
			t.Errorf("mode of %s: got %o, want 700", filepath.Dir(paths[name]), info.Mode().Perm())
		}
	}
	if n := mountCount(t, d.Root); n != 3 {
		t.Errorf("after Prepare: got %d mounts, want 3", n)
	}
	must(t, d.Remove(t.Context(), uid))
	if n := mountCount(t, d.Root); n != 0 {
		t.Errorf("after Remove: got %d mounts, want 0", n)
	}
}

// TestPodFiles_FSGroup checks the modes and the group of directories and files.
func TestPodFiles_FSGroup(t *testing.T) {
	d, group := newDir(t), int64(4321)
	pod := newPod(secretVolume("s"))
	pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group}
	paths, err := d.Prepare(t.Context(), pod, constantFiles(map[string]render.File{"sub/k": {Data: []byte("v"), Mode: 0o400}}))
	must(t, err)
	for at, mode := range map[string]uint32{"": 0o3777, "..data/": 0o2755, "sub/": 0o2755, "sub/k": 0o440} {
		var st unix.Stat_t
		must(t, unix.Stat(filepath.Join(paths["s"], at)+strings.Repeat("/.", strings.Count(at, "/")-strings.Count(at, "k")), &st))
		if st.Mode&0o7777 != mode || st.Gid != 4321 {
			t.Errorf("path %q: got mode %o and group %d; want mode %o and group 4321", at, st.Mode&0o7777, st.Gid, mode)
		}
	}
}

// TestPodFiles_Owner checks that a file has its desired owner, and that the mode stays 0600 when the
// owner changes.
func TestPodFiles_Owner(t *testing.T) {
	d := newDir(t)
	pod := newPod(secretVolume("v"))
	for _, owner := range []*int64{new(int64(1000)), new(int64(1001)), nil} {
		paths, err := d.Prepare(t.Context(), pod, constantFiles(map[string]render.File{"token": {Data: []byte("x"), Mode: 0o600, Owner: owner}}))
		must(t, err)
		var st unix.Stat_t
		must(t, unix.Stat(filepath.Join(paths["v"], "token"), &st))
		if want := owner; want != nil && int64(st.Uid) != *want || st.Mode&0o777 != 0o600 {
			t.Errorf("token: got owner %d and mode %o; want owner %v and mode 600", st.Uid, st.Mode, want)
		}
	}
	must(t, d.Remove(t.Context(), pod.UID))
}

// TestPodFiles_Missing checks that Prepare fails if the Secret of a new volume is missing, and keeps
// the files if the Secret of an existing volume is missing.
func TestPodFiles_Missing(t *testing.T) {
	d, pod := newDir(t), newPod(secretVolume("s"))
	missing := filesFunc(func(*v1.Volume) (map[string]render.File, error) {
		return nil, fmt.Errorf(`Secret "s" %w`, render.ErrMissing)
	})
	if _, err := d.Prepare(t.Context(), pod, missing); err == nil || !strings.Contains(err.Error(), `Secret "s"`) || d.Check(t.Context(), pod, missing, nil) == nil {
		t.Errorf("new volume: got error %v from Prepare, want errors about Secret \"s\" from Prepare and Check", err)
	}
	if n := mountCount(t, d.Root); n != 0 {
		t.Errorf("after a failed Prepare: got %d mounts, want 0", n)
	}
	paths, err := d.Prepare(t.Context(), pod, constantFiles(textFiles("k", "v")))
	must(t, err)
	_, err = d.Prepare(t.Context(), pod, missing)
	must(t, err)
	if diff := cmp.Diff(textFiles("k", "v"), readFiles(t, paths["s"])); diff != "" {
		t.Errorf("files after the Secret was deleted (-want +got):\n%s", diff)
	}
}

// TestPodFiles_Crash checks that Prepare removes the entries that an interrupted write left behind.
func TestPodFiles_Crash(t *testing.T) {
	d, pod := newDir(t), newPod(configVolume("c"))
	paths, err := d.Prepare(t.Context(), pod, constantFiles(textFiles("a", "1", "b", "1")))
	must(t, err)
	vol, outside := paths["c"], t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	half := filepath.Join(vol, "..2026_01_01_00_00_00.0000000001")
	must(t, os.Mkdir(half, 0o755))
	must(t, os.WriteFile(filepath.Join(half, "a"), []byte("half"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(vol, "..data_tmp")))
	must(t, os.Remove(filepath.Join(vol, "b")))
	must(t, os.Symlink(outside, filepath.Join(vol, "b")))
	must(t, os.Symlink(outside, filepath.Join(vol, "more")))
	for _, want := range []map[string]render.File{textFiles("a", "1", "b", "1"), textFiles("b", "2")} {
		_, err = d.Prepare(t.Context(), pod, constantFiles(want))
		must(t, err)
		if diff := cmp.Diff(want, readFiles(t, vol)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	names, err := os.ReadDir(vol)
	must(t, err)
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil || len(names) != 3 {
		t.Errorf("entries of the volume: got %v, want 3; file outside the volume: error %v, want none", names, err)
	}
}

// TestPodFiles_InvalidPaths checks that paths outside the volume and reserved names are rejected.
func TestPodFiles_InvalidPaths(t *testing.T) {
	for _, bad := range []string{"", ".", "..", "../x", "/etc/x", "a/../../x", "..data", "..x/y", "a//b", "a/", "./a"} {
		d := newDir(t)
		if _, err := d.Prepare(t.Context(), newPod(configVolume("c")), constantFiles(textFiles(bad, "x"))); err == nil {
			t.Errorf("file %q: got no error, want one", bad)
		}
	}
}

// TestPodFiles_Concurrent checks that concurrent calls of Prepare succeed and leave no mounts behind.
func TestPodFiles_Concurrent(t *testing.T) {
	d, pod := newDir(t), newPod(secretVolume("s"), configVolume("c"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := d.Prepare(t.Context(), pod, constantFiles(textFiles("k", fmt.Sprint(i%2)))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	paths, err := d.Prepare(t.Context(), pod, constantFiles(textFiles("k", "end")))
	must(t, err)
	for _, p := range paths {
		if diff := cmp.Diff(textFiles("k", "end"), readFiles(t, p)); diff != "" {
			t.Errorf("files in %s (-want +got):\n%s", p, diff)
		}
	}
	if n := mountCount(t, d.Root); n != 1 {
		t.Errorf("got %d mounts, want 1", n)
	}
}

// TestPodFiles_AnyContent checks that a volume has exactly the desired files regardless of its
// previous content.
func TestPodFiles_AnyContent(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "pods")
		if err != nil {
			t.Fatal(err)
		}
		d, pod := Dir{Root: filepath.Join(dir, "pods")}, newPod(configVolume("c"))
		name := rapid.StringMatching(`[-._a-zA-Z0-9]{1,12}(/[-._a-z]{1,4}){0,2}`)
		for range rapid.IntRange(1, 4).Draw(t, "contents") {
			files := map[string]render.File{}
			for range rapid.IntRange(0, 5).Draw(t, "files") {
				files[name.Draw(t, "name")] = render.File{
					Data: rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "data"), Mode: uint32(rapid.IntRange(0o400, 0o777).Draw(t, "mode")),
				}
			}
			paths, err := d.Prepare(t.Context(), pod, constantFiles(files))
			if slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(n string) bool { return checkFile(n) != nil }) || clashes(files) {
				if err == nil {
					t.Fatalf("Prepare with files %v: got no error, want one", slices.Sorted(maps.Keys(files)))
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(files, readFiles(t, paths["c"]), cmp.Comparer(func(a, b []byte) bool { return string(a) == string(b) })); diff != "" {
				t.Fatalf("files (-want +got):\n%s", diff)
			}
		}
		var outside []string
		if err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if rel, _ := filepath.Rel(dir, p); !strings.Contains(rel, "~configmap/c") && !e.IsDir() {
				outside = append(outside, rel)
			}
			return err
		}); err != nil && !errors.Is(err, fs.ErrNotExist) || len(outside) > 0 {
			t.Fatalf("files outside the volume: got %v, error %v; want none", outside, err)
		}
	})
}

// clashes reports whether a file in files is also the parent directory of another file.
func clashes(files map[string]render.File) bool {
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := files[dir]; ok {
				return true
			}
		}
	}
	return false
}
