package device

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"podd/reconcile/device/allocation"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// sample returns the allocations that every file in testdata/files contains. All their fields are
// set.
func sample() map[allocation.PodVersion]grantMap {
	return map[allocation.PodVersion]grantMap{
		{Key: types.NamespacedName{Namespace: "default", Name: "web-n1"}, UID: "u1", Hash: "h1"}: {"main": {gpu: Grant{
			Resource: gpu, IDs: []string{"gpu0", "gpu1"}, NUMA: map[string][]int64{"gpu0": {0}, "gpu1": {0, 1}}, RequiresPreStart: true,
			Response: &v1beta1.ContainerAllocateResponse{Envs: map[string]string{"IDS": "gpu0 gpu1"}},
		}}},
	}
}

// formats returns the content of one file for each format that podd has ever written, by file name.
func formats(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/files/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("got %d files, %v; want at least 2", len(files), err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		all[filepath.Base(file)] = readFile(t, file)
	}
	return all
}

// savedFile returns the content of the file that podd writes for the allocations of sample.
func savedFile(t *testing.T) []byte {
	t.Helper()
	l := open(t)
	saveSample(t, l)
	return readFile(t, l.file)
}

func saveSample(t *testing.T, l *Manager) {
	t.Helper()
	l.pods = sample()
	l.recordLocked(gpu)
	l.revision++
	if err := l.save(); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// openContent opens a Manager with a file that has the given content. If opening it returns an error,
// openContent checks that the error names the file and that the Manager has no allocations.
func openContent(t *testing.T, file string, content []byte) (*Manager, error) {
	t.Helper()
	writeFile(t, file, content)
	l, err := Open(file)
	if l == nil {
		t.Fatalf("%q: got nil, want a Manager", content)
	}
	if err != nil && (!strings.Contains(err.Error(), file) || len(l.pods) > 0) {
		t.Errorf("%q: got %d pods and error %q; want no pods and an error that names %s", content, len(l.pods), err, file)
	}
	return l, err
}

// TestFormats checks that podd reads every field of a file of every format, and that podd writes
// the newest format.
func TestFormats(t *testing.T) {
	all := formats(t)
	for name, data := range all {
		l, err := openContent(t, filepath.Join(t.TempDir(), "devices.json"), data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(sample(), l.pods, protocmp.Transform()); diff != "" {
			t.Errorf("allocations of %s (-want +got):\n%s", name, diff)
		}
		if got := l.namesLocked(); !slices.Equal(got, []string{gpu}) {
			t.Errorf("%s: got resources %q, want %q", name, got, gpu)
		}
	}
	if got, want := savedFile(t), all["03-resources.json"]; string(got) != string(want) {
		t.Errorf("file that podd writes: got %s, want the newest file of testdata/files, %s", got, want)
	}
}

// TestDecode_Damaged truncates the file of each format at every byte, and flips every bit of
// the file that podd writes. The first format has no checksum, so podd may read another
// value in it, but it must not panic. TestSave_UnreadableKept reads damaged files from disk.
func TestDecode_Damaged(t *testing.T) {
	for name, data := range formats(t) {
		for n := range data {
			if _, err := decodeContents(data[:n]); err == nil {
				t.Errorf("%s: first %d bytes: got no error, want one", name, n)
			}
		}
	}
	flip(formats(t)["01-array.json"], func(flipped []byte) { _, _ = decodeContents(flipped) })
	flip(savedFile(t), func(flipped []byte) {
		if _, err := decodeContents(flipped); err == nil {
			t.Errorf("%s: got no error, want one", flipped)
		}
	})
}

// flip calls try with data in which one bit differs, for every bit.
func flip(data []byte, try func([]byte)) {
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			try(data)
			data[i] ^= 1 << bit
		}
	}
}

// TestOpen_Newer checks that podd does not read a file of a newer podd, even if its fields have
// other types, and that the error contains the reason.
func TestOpen_Newer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "devices.json")
	for _, text := range []string{`{"version":2}`, `{"version":2,"records":{"a":1},"checksum":7}`} {
		if _, err := openContent(t, file, []byte(text)); err == nil || !strings.Contains(err.Error(), "version 2 of a newer podd") {
			t.Errorf("%s: got error %v, want one with \"version 2 of a newer podd\"", text, err)
		}
	}
}

// TestOpen_Absent checks that an absent file is not an error, and that saving then creates no copy
// of an unreadable file.
func TestOpen_Absent(t *testing.T) {
	l := open(t)
	saveSample(t, l)
	saveSample(t, reopen(t, l.file))
	if _, err := os.Lstat(l.file + ".unreadable"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Lstat of the copy of an unreadable file: got error %v, want not exist", err)
	}
}

// TestSave_UnreadableKept checks that an unreadable file is renamed when allocations are saved, and
// not before. Only the newest unreadable file is kept.
func TestSave_UnreadableKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "devices.json")
	kept := file + ".unreadable"
	damaged := savedFile(t)
	damaged[len(damaged)/2] ^= 1
	for _, content := range []string{`{"version":2}`, string(damaged), ""} {
		l, err := openContent(t, file, []byte(content))
		if err == nil {
			t.Fatalf("file %q: got no error, want one", content)
		}
		if err := l.save(); err != nil || string(readFile(t, file)) != content {
			t.Errorf("save without allocations: got error %v and file content %q; want no error and %q", err, readFile(t, file), content)
		}
		saveSample(t, l)
		if got := readFile(t, kept); string(got) != content {
			t.Errorf("kept unreadable file: got %q, want %q", got, content)
		}
		again := reopen(t, file)
		if diff := cmp.Diff(sample(), again.pods, protocmp.Transform()); diff != "" {
			t.Errorf("allocations saved after %q was unreadable (-want +got):\n%s", content, diff)
		}
		l.revision++
		if err := l.save(); err != nil || string(readFile(t, kept)) != content {
			t.Errorf("second save: got error %v and kept file %q; want no error and %q", err, readFile(t, kept), content)
		}
	}
}

// TestSave_UnreadableKept_OtherTypes checks that a directory and a symbolic link are renamed,
// too, and that the target of the link does not change.
func TestSave_UnreadableKept_OtherTypes(t *testing.T) {
	for name, create := range map[string]func(file, target string) error{
		"directory": func(file, _ string) error { return os.Mkdir(file, 0o700) },
		"link":      func(file, target string) error { return os.Symlink(target, file) },
	} {
		dir := t.TempDir()
		file, target := filepath.Join(dir, "devices.json"), filepath.Join(dir, "target")
		writeFile(t, target, []byte("[]"))
		if err := create(file, target); err != nil {
			t.Fatal(err)
		}
		l, err := Open(file)
		if err == nil {
			t.Errorf("%s: Open: got no error, want one", name)
		}
		saveSample(t, l)
		if info, err := os.Lstat(file + ".unreadable"); err != nil || info.Mode().IsRegular() {
			t.Errorf("%s: kept file: got error %v, want none", name, err)
		}
		if got := readFile(t, target); string(got) != "[]" {
			t.Errorf("%s: target of the link: got %q, want no change", name, got)
		}
		reopen(t, file)
	}
}

// TestSave_UnreadableKept_Failed checks that podd saves no allocations if it cannot keep the
// unreadable file, and that the error contains this problem.
func TestSave_UnreadableKept_Failed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "devices.json")
	if err := os.MkdirAll(filepath.Join(file+".unreadable", "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := openContent(t, file, []byte("damaged"))
	if err == nil {
		t.Fatal("damaged file: got no error, want one")
	}
	l.pods = sample()
	l.revision++
	if err := l.save(); err == nil || !strings.Contains(err.Error(), "renaming the unreadable file") || string(readFile(t, file)) != "damaged" {
		t.Errorf("save: got error %v and file content %q; want an error about renaming and the content \"damaged\"", err, readFile(t, file))
	}
	if err := os.RemoveAll(file + ".unreadable"); err != nil {
		t.Fatal(err)
	}
	if err := l.save(); err != nil || string(readFile(t, file+".unreadable")) != "damaged" {
		t.Errorf("save after the directory was removed: got error %v, want none and the damaged file kept", err)
	}
	reopen(t, file)
}

// TestOpen_EIO checks that a file on a broken disk is not treated as an absent file. The test opens
// /proc/self/mem, because reading it at address 0 fails with EIO, like a read from a broken disk.
func TestOpen_EIO(t *testing.T) {
	if l, err := Open("/proc/self/mem"); !errors.Is(err, unix.EIO) || !l.isUnreadable {
		t.Errorf("got error %v, want EIO and an unreadable file", err)
	}
}
