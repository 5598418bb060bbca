package apidir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"podd/manifest/filename"
)

var web = ObjectID{"Pod", "default", "web"}

func open(t *testing.T) *Dir {
	t.Helper()
	d, err := Open(filepath.Join(t.TempDir(), "a", "api"), false)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func list(t *testing.T, d *Dir) []string {
	t.Helper()
	entries, err := os.ReadDir(d.path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestDir_WriteReadRemove(t *testing.T) {
	d := open(t)
	if _, err := d.Read(web); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading a missing file: got error %v, want fs.ErrNotExist", err)
	}
	for _, text := range []string{"first", "second"} {
		if err := d.Write(web, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Read(web); err != nil || string(got) != text {
			t.Errorf("Read: got %q, error %v; want %q", got, err, text)
		}
	}
	if got := list(t, d); !slices.Equal(got, []string{"pod_default_web.json"}) {
		t.Errorf("files in the directory: got %q, want one per object", got)
	}
	for path, want := range map[string]fs.FileMode{d.path: fs.ModeDir | 0o700, d.Path(web): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: got mode %v, error %v; want mode %v", path, info.Mode(), err, want)
		}
	}
	for range 2 {
		if err := d.Remove(web); err != nil {
			t.Errorf("removing: got %v, want no error", err)
		}
	}
	if got := list(t, d); len(got) != 0 {
		t.Errorf("after removing: got %q, want no file", got)
	}
}

// TestOpen_ExistedBefore checks that neither Open nor Write creates the directory if it is missing
// but existed before. podd would read the new, empty directory and delete all pods.
func TestOpen_ExistedBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api")
	d, err := Open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(web, []byte("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("writing: got error %v, want fs.ErrNotExist", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of the directory: got error %v, want fs.ErrNotExist", err)
	}
}

// TestOpen_OtherUsers checks that Open refuses a directory to which other users have access, and
// does not change its mode.
func TestOpen_OtherUsers(t *testing.T) {
	for _, mode := range []fs.FileMode{0o755, 0o710, 0o701, 0o777 | fs.ModeSticky} {
		path := t.TempDir()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, false); err == nil || !strings.Contains(err.Error(), "set the mode to 0700") {
			t.Errorf("Open with mode %v: got error %v, want one that contains \"set the mode to 0700\"", mode, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != mode|fs.ModeDir {
			t.Errorf("after Open: got mode %v, error %v; want the unchanged mode %v", info.Mode(), err, mode)
		}
	}
	path := t.TempDir()
	if err := errors.Join(os.Chmod(path, 0o700), os.Chown(path, 1234, 0)); errors.Is(err, fs.ErrPermission) {
		return // only root can change the owner
	}
	if _, err := Open(path, false); err == nil || !strings.Contains(err.Error(), "not owned by root") {
		t.Errorf("Open of a directory of another user: got error %v, want one that contains \"not owned by root\"", err)
	}
}

func TestDir_KeepsOtherFiles(t *testing.T) {
	d := open(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, d.Path(web)); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(web, []byte("x")); !errors.Is(err, errNotRegular) {
		t.Errorf("writing through a link: got %v, want %v", err, errNotRegular)
	}
	if _, err := d.Read(web); err == nil {
		t.Error("Read through a link: got no error, want one")
	}
	if err := d.Remove(web); !errors.Is(err, errNotRegular) {
		t.Errorf("removing a link: got %v, want %v", err, errNotRegular)
	}
	if got, _ := os.ReadFile(secret); string(got) != "outside" {
		t.Errorf("target of the link: got %q, want it unchanged", got)
	}
	for _, name := range []string{"mine.yaml", ".podd-1.tmp", ".podd-rc"} {
		if err := os.WriteFile(filepath.Join(d.path, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(d.path, true); err != nil {
		t.Fatal(err)
	}
	if got, want := list(t, d), []string{".podd-rc", "mine.yaml", "pod_default_web.json"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestObject_FileName(t *testing.T) {
	long := strings.Repeat("a", 250)
	for _, c := range []struct {
		object ObjectID
		file   string // "" if the object has no valid name
	}{
		{web, "pod_default_web.json"},
		{ObjectID{"PersistentVolumeClaim", "shop", "a.b"}, "persistentvolumeclaim_shop_a.b.json"},
		{ObjectID{"PersistentVolume", "", "data"}, "persistentvolume_data.json"},
		{ObjectID{"ClusterTrustBundle", "", "roots"}, "clustertrustbundle_roots.json"},
		{ObjectID{"ClusterTrustBundle", "", "example.com:mesh:a"}, "clustertrustbundle_example.com:mesh:a.json"},
		{ObjectID{"ClusterTrustBundle", "", "mesh::a"}, ""},
		{ObjectID{"CSIDriver", "", "disk.example.com"}, "csidriver_disk.example.com.json"},
		{ObjectID{"CSIDriver", "", "../disk"}, ""},
		{ObjectID{"ClusterTrustBundle", "", "mesh:.."}, ""},
		{ObjectID{"ClusterTrustBundle", "", ":"}, ""},
		{ObjectID{"ClusterTrustBundle", "default", "roots"}, ""},
		{ObjectID{"ConfigMap", "default", "a:b"}, ""},
		{ObjectID{"Pod", "default", "x.bak"}, "pod_default_x.bak.json"},
		{ObjectID{"PersistentVolume", "default", "data"}, ""},
		{ObjectID{"Pod", "", "web"}, ""},
		{ObjectID{"Node", "", "n"}, ""},
		{ObjectID{"pod", "default", "web"}, ""},
		{ObjectID{"Pod", "default", ""}, ""},
		{ObjectID{"Pod", "default", "../web"}, ""},
		{ObjectID{"Pod", "default", "a/b"}, ""},
		{ObjectID{"Pod", "default", "a\x00b"}, ""},
		{ObjectID{"Pod", "default", "a_b"}, ""},
		{ObjectID{"Pod", "default", ".web"}, ""},
		{ObjectID{"Pod", "default", "Web"}, ""},
		{ObjectID{"Pod", "..", "web"}, ""},
		{ObjectID{"Pod", "a.b", "web"}, ""},
		{ObjectID{"Pod", "default", strings.Repeat("a", 254)}, ""},
	} {
		err := c.object.check()
		if (err == nil) != (c.file != "") {
			t.Errorf("check of %+v: got error %v, want file name %q", c.object, err, c.file)
			continue
		}
		if err == nil && c.object.fileName() != c.file {
			t.Errorf("%+v: got file name %q, want %q", c.object, c.object.fileName(), c.file)
		}
	}
	d, seen := open(t), map[string]bool{}
	for _, name := range []string{long, long + "b", long + ".b"} {
		o := ObjectID{"PersistentVolumeClaim", "a-namespace-of-some-length", name}
		if file := o.fileName(); len(file) > maxFileName || seen[file] || filename.Classify(file) != filename.Manifest {
			t.Errorf("%s: got file name %q, want a short and unique one", name, file)
		}
		seen[o.fileName()] = true
		if err := d.Write(o, []byte("x")); err != nil {
			t.Error(err)
		}
	}
}

// TestDir_Write_Concurrent checks that a concurrent reader gets the complete old content or the
// complete new content.
func TestDir_Write_Concurrent(t *testing.T) {
	d := open(t)
	contents := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 50_000)}
	if err := d.Write(web, []byte(contents[0])); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for range 20 {
				if err := d.Write(web, []byte(contents[n%2])); err != nil {
					t.Error(err)
				}
				if got, err := d.Read(web); err != nil || !slices.Contains(contents, string(got)) {
					t.Errorf("Read: got %d bytes, error %v; want the complete old or new content", len(got), err)
				}
			}
		})
	}
	all.Wait()
}

// TestDir_Write_DiskFull checks that a failed write keeps the previous content.
func TestDir_Write_DiskFull(t *testing.T) {
	d := open(t)
	if err := d.Write(web, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(web, make([]byte, MaxSize+1)); !errors.Is(err, errTooLarge) {
		t.Errorf("Write of too many bytes: got error %v, want %v", err, errTooLarge)
	}
	if got, err := d.Read(web); err != nil || string(got) != "first" {
		t.Errorf("Read after the failed write: got %q, error %v; want \"first\"", got, err)
	}
}
