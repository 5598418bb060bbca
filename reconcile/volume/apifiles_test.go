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
)

// texts are files of mode 0644.
func texts(pairs ...string) map[string]render.File {
	files := map[string]render.File{}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = render.File{Data: []byte(pairs[i+1]), Mode: 0o644}
	}
	return files
}

func always(files map[string]render.File) Files {
	return func(*v1.Volume) (map[string]render.File, error) { return files, nil }
}

func secretVolume(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{}}}
}

func configVolume(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}}
}

// read is what a program sees in a volume: its files without the volume's own
// entries.
func read(t interface{ Fatal(...any) }, vol string) map[string]render.File {
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

func TestWrittenFollowsItsContent(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	for _, v := range []v1.Volume{configVolume("v"), secretVolume("v")} {
		d, pod := newDir(t), podOf(v)
		first := texts("a", "1", "sub/b", "2", "gone", "3")
		first["exec"] = render.File{Data: []byte("#!"), Mode: 0o750}
		paths, err := d.Prepare(t.Context(), pod, always(first))
		must(t, err)
		vol := paths["v"]
		if diff := cmp.Diff(first, read(t, vol)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		was, link := tree(t, d.Root), readlink(t, vol)
		_, err = d.Prepare(t.Context(), pod, always(first))
		must(t, err)
		if diff := cmp.Diff(was, tree(t, d.Root)); diff != "" {
			t.Errorf("the second time changed (-before +after):\n%s", diff)
		}
		// A program that has the directory open goes on with what it has.
		open, err := os.Open(filepath.Join(vol, "a"))
		must(t, err)
		defer open.Close()
		second := texts("a", "one", "sub/c", "2")
		_, err = d.Prepare(t.Context(), pod, always(second))
		must(t, err)
		if diff := cmp.Diff(second, read(t, vol)); diff != "" {
			t.Errorf("after a change (-want +got)\n%s", diff)
		}
		if now := readlink(t, vol); now == link {
			t.Errorf("..data still is %s", now)
		}
		names, err := os.ReadDir(vol)
		must(t, err)
		if len(names) != 4 { // ..data, its target, a, sub
			t.Errorf("there is %v", names)
		}
		open.Close()
		must(t, d.Release(t.Context(), uid))
		must(t, d.Remove(t.Context(), uid))
		if left, _ := os.ReadDir(d.Root); len(left) > 0 || mountCount(t, d.Root) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func readlink(t *testing.T, vol string) string {
	t.Helper()
	link, err := os.Readlink(filepath.Join(vol, "..data"))
	must(t, err)
	return link
}

func TestSecretsAreInMemoryBehindAPrivateDirectory(t *testing.T) {
	d := newDir(t)
	d.Memory = 64 << 20
	pod := podOf(secretVolume("s"), configVolume("c"),
		v1.Volume{Name: "p", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}},
		v1.Volume{Name: "d", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{}}})
	paths, err := d.Prepare(t.Context(), pod, always(texts("k", "v")))
	must(t, err)
	for name, memory := range map[string]bool{"s": true, "p": true, "d": true, "c": false} {
		var st unix.Statfs_t
		must(t, unix.Statfs(paths[name], &st))
		if (int64(st.Type) == unix.TMPFS_MAGIC) != memory && name != "c" || mountCount(t, paths[name]) != map[bool]int{true: 1}[memory] {
			t.Errorf("%s is in memory: %v, want %v", name, !memory, memory)
		}
		if size := int64(st.Blocks) * st.Bsize; memory && size != d.Memory {
			t.Errorf("%s has room for %d, want what all pods may use, %d", name, size, d.Memory)
		}
		info, err := os.Stat(filepath.Dir(paths[name]))
		must(t, err)
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %o", filepath.Dir(paths[name]), info.Mode().Perm())
		}
	}
	if n := mountCount(t, d.Root); n != 3 {
		t.Errorf("%d mounts, want 3", n)
	}
	must(t, d.Remove(t.Context(), uid))
	if n := mountCount(t, d.Root); n != 0 {
		t.Errorf("%d mounts are left", n)
	}
}

func TestWrittenBelongsToTheGroup(t *testing.T) {
	d, group := newDir(t), int64(4321)
	pod := podOf(secretVolume("s"))
	pod.Spec.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group}
	paths, err := d.Prepare(t.Context(), pod, always(map[string]render.File{"sub/k": {Data: []byte("v"), Mode: 0o400}}))
	must(t, err)
	for at, mode := range map[string]uint32{"": 0o3777, "..data/": 0o2755, "sub/": 0o2755, "sub/k": 0o440} {
		var st unix.Stat_t
		must(t, unix.Stat(filepath.Join(paths["s"], at)+strings.Repeat("/.", strings.Count(at, "/")-strings.Count(at, "k")), &st))
		if st.Mode&0o7777 != mode || st.Gid != 4321 {
			t.Errorf("%q has mode %o and group %d, want %o and 4321", at, st.Mode&0o7777, st.Gid, mode)
		}
	}
}

func TestWrittenBelongsToItsOwner(t *testing.T) {
	d := newDir(t)
	pod := podOf(secretVolume("v"))
	for _, owner := range []*int64{new(int64(1000)), new(int64(1001)), nil} {
		paths, err := d.Prepare(t.Context(), pod, always(map[string]render.File{"token": {Data: []byte("x"), Mode: 0o600, Owner: owner}}))
		must(t, err)
		var st unix.Stat_t
		must(t, unix.Stat(filepath.Join(paths["v"], "token"), &st))
		if want := owner; want != nil && int64(st.Uid) != *want || st.Mode&0o777 != 0o600 {
			t.Errorf("uid %d, mode %o", st.Uid, st.Mode)
		}
	}
	must(t, d.Remove(t.Context(), pod.UID))
}

func TestWrittenStaysWhileItsObjectIsMissing(t *testing.T) {
	d, pod := newDir(t), podOf(secretVolume("s"))
	gone := Files(func(*v1.Volume) (map[string]render.File, error) {
		return nil, fmt.Errorf(`Secret "s" %w`, render.ErrMissing)
	})
	if _, err := d.Prepare(t.Context(), pod, gone); err == nil || !strings.Contains(err.Error(), `Secret "s"`) || d.Check(t.Context(), pod, gone, nil) == nil {
		t.Errorf("before it was written: %v", err)
	}
	if n := mountCount(t, d.Root); n != 0 {
		t.Errorf("%d mounts", n)
	}
	paths, err := d.Prepare(t.Context(), pod, always(texts("k", "v")))
	must(t, err)
	_, err = d.Prepare(t.Context(), pod, gone)
	must(t, err)
	if diff := cmp.Diff(texts("k", "v"), read(t, paths["s"])); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What an interrupted write leaves is nobody's and goes.
func TestWriteAfterACrash(t *testing.T) {
	d, pod := newDir(t), podOf(configVolume("c"))
	paths, err := d.Prepare(t.Context(), pod, always(texts("a", "1", "b", "1")))
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
	for _, want := range []map[string]render.File{texts("a", "1", "b", "1"), texts("b", "2")} {
		_, err = d.Prepare(t.Context(), pod, always(want))
		must(t, err)
		if diff := cmp.Diff(want, read(t, vol)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	names, err := os.ReadDir(vol)
	must(t, err)
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil || len(names) != 3 {
		t.Errorf("there is %v, outside %v", names, err)
	}
}

func TestWriteRefusesPathsOutside(t *testing.T) {
	for _, bad := range []string{"", ".", "..", "../x", "/etc/x", "a/../../x", "..data", "..x/y", "a//b", "a/", "./a"} {
		d := newDir(t)
		if _, err := d.Prepare(t.Context(), podOf(configVolume("c")), always(texts(bad, "x"))); err == nil {
			t.Errorf("wrote %q", bad)
		}
	}
}

func TestPreparedSideBySide(t *testing.T) {
	d, pod := newDir(t), podOf(secretVolume("s"), configVolume("c"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := d.Prepare(t.Context(), pod, always(texts("k", fmt.Sprint(i%2)))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	paths, err := d.Prepare(t.Context(), pod, always(texts("k", "end")))
	must(t, err)
	for _, p := range paths {
		if diff := cmp.Diff(texts("k", "end"), read(t, p)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	if n := mountCount(t, d.Root); n != 1 {
		t.Errorf("%d mounts, want 1", n)
	}
}

// TestAnyContent checks that a volume has exactly the desired files regardless of its
// previous content.
func TestAnyContent(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "pods")
		if err != nil {
			t.Fatal(err)
		}
		d, pod := Dir{Root: filepath.Join(dir, "pods")}, podOf(configVolume("c"))
		name := rapid.StringMatching(`[-._a-zA-Z0-9]{1,12}(/[-._a-z]{1,4}){0,2}`)
		for range rapid.IntRange(1, 4).Draw(t, "contents") {
			files := map[string]render.File{}
			for range rapid.IntRange(0, 5).Draw(t, "files") {
				files[name.Draw(t, "name")] = render.File{
					Data: rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "data"), Mode: uint32(rapid.IntRange(0o400, 0o777).Draw(t, "mode")),
				}
			}
			paths, err := d.Prepare(t.Context(), pod, always(files))
			if slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(n string) bool { return checkFile(n) != nil }) || clashes(files) {
				if err == nil {
					t.Fatalf("took %v", slices.Sorted(maps.Keys(files)))
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(files, read(t, paths["c"]), cmp.Comparer(func(a, b []byte) bool { return string(a) == string(b) })); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
		}
		var beside []string
		if err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if rel, _ := filepath.Rel(dir, p); !strings.Contains(rel, "~configmap/c") && !e.IsDir() {
				beside = append(beside, rel)
			}
			return err
		}); err != nil && !errors.Is(err, fs.ErrNotExist) || len(beside) > 0 {
			t.Fatalf("beside the volume: %v, %v", beside, err)
		}
	})
}

// clashes: a file that would be a directory, too.
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
