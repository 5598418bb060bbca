package archive

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newTarget creates the directory dir with the file "outside" and the subdirectory "in". Tests
// extract archives to root, which is "in".
func newTarget(t *testing.T) (dir string, root *os.Root) {
	t.Helper()
	dir = t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "outside"), []byte("safe"), 0o600),
		os.Mkdir(filepath.Join(dir, "in"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return dir, root
}

// newArchive returns a tar archive with entries. An entry without a type becomes a file with the
// content "evil".
func newArchive(t *testing.T, entries ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		h.Mode = 0o4755
		if h.Typeflag == 0 {
			h.Typeflag, h.Size = tar.TypeReg, 4
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			w.Write([]byte("evil"))
		}
	}
	w.Close()
	return &b
}

// TestExtract_Untrusted checks that an archive cannot change files outside the target. Each case
// extracts the entry "x" and all entries below it as "in/y".
func TestExtract_Untrusted(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(dir string) error // prepares the target; may be nil
		entries []tar.Header
		want    string // part of the error; "" for none
		skipped string // "ENTRY: REASON" of the skipped entry; "" for none
	}{
		"parent":                          {entries: []tar.Header{{Name: "../outside"}}, want: `contains ".."`},
		"parent within the path":          {entries: []tar.Header{{Name: "x/a/../../../outside"}}, want: `contains ".."`},
		"absolute":                        {entries: []tar.Header{{Name: "/outside"}}, want: "absolute"},
		"other name":                      {entries: []tar.Header{{Name: "other"}}, want: "not below the requested x"},
		"other name with the same prefix": {entries: []tar.Header{{Name: "xy"}}, want: "not below the requested x"},
		"through a symlink":               {entries: []tar.Header{{Name: "x", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "x/outside"}}, skipped: "x: symbolic link"},
		"hard link outside":               {entries: []tar.Header{{Name: "x/l", Typeflag: tar.TypeLink, Linkname: "../outside"}}, want: `contains ".."`},
		"hard link to no file":            {entries: []tar.Header{{Name: "x/l", Typeflag: tar.TypeLink, Linkname: "x/none"}}, skipped: "x/l: hard link to a file that was not extracted"},
		"device":                          {entries: []tar.Header{{Name: "x", Typeflag: tar.TypeBlock}}, skipped: "x: neither a regular file nor a directory"},
		"fifo":                            {entries: []tar.Header{{Name: "x", Typeflag: tar.TypeFifo}}, skipped: "x: neither a regular file nor a directory"},
		"existing symlink":                {before: func(dir string) error { return os.Symlink("../outside", filepath.Join(dir, "in/y")) }, entries: []tar.Header{{Name: "x"}}},
		"existing symlink as parent": {
			before: func(dir string) error { return os.Symlink("..", filepath.Join(dir, "in/y")) }, entries: []tar.Header{{Name: "x/outside"}}, want: "escapes",
		},
		"existing symlink as directory": {
			before: func(dir string) error { return os.Symlink("..", filepath.Join(dir, "in/y")) }, entries: []tar.Header{{Name: "x", Typeflag: tar.TypeDir}}, want: "is not a directory",
		},
		"existing directory": {
			before: func(dir string) error { return os.Mkdir(filepath.Join(dir, "in/y"), 0o700) }, entries: []tar.Header{{Name: "x"}}, want: "is a directory",
		},
		"empty": {want: "the archive is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, root := newTarget(t)
			if c.before != nil {
				if err := c.before(dir); err != nil {
					t.Fatal(err)
				}
			}
			var skipped []string
			err := Extract(newArchive(t, c.entries...), "x", root, "y", func(entry, why string) { skipped = append(skipped, entry+": "+why) })
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got error %v, want one that contains %q (\"\" for none)", err, c.want)
			}
			if got := strings.Join(skipped, ";"); got != c.skipped {
				t.Errorf("skipped entries: got %q, want %q", got, c.skipped)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "outside")); string(text) != "safe" {
				t.Errorf("file outside the target: got content %q, error %v; want \"safe\" and no error", text, err)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 2 {
				t.Errorf("directory of the target: got entries %v, want only in and outside", entries)
			}
		})
	}
}

// TestWrite_Extract checks that Extract restores the files and directories of an archive that Write
// has written. Extract skips the only symbolic link, src/link.
func TestWrite_Extract(t *testing.T) {
	from := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(from, "src/deep/er"), 0o755),
		os.Mkdir(filepath.Join(from, "src/empty"), 0o700),
		os.WriteFile(filepath.Join(from, "src/a"), []byte("one"), 0o600),
		os.WriteFile(filepath.Join(from, "src/deep/er/b"), bytes.Repeat([]byte("b"), 1<<20), 0o755),
		os.Symlink("a", filepath.Join(from, "src/link")),
		os.Symlink("src", filepath.Join(from, "symlink")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, local := range []string{"src", "symlink"} {
		var b bytes.Buffer
		onSkip := func(entry, why string) {
			t.Errorf("Write of %s skipped %s (%s), want no skipped entries", local, entry, why)
		}
		if err := Write(&b, filepath.Join(from, local), "it", onSkip); err != nil {
			t.Fatal(err)
		}
		dir, root := newTarget(t)
		skipped := 0
		if err := Extract(&b, "it", root, "copy", func(string, string) { skipped++ }); err != nil || skipped != 1 {
			t.Fatalf("Extract of %s: got error %v, %d skipped entries; want no error, 1 skipped entry", local, err, skipped)
		}
		for name, mode := range map[string]os.FileMode{"a": 0o600, "deep/er/b": 0o755, "empty": 0o700 | os.ModeDir} {
			info, err := os.Stat(filepath.Join(dir, "in/copy", name))
			if err != nil || info.Mode() != mode {
				t.Errorf("extracted %s: got %v, error %v; want mode %v", name, info, err, mode)
			}
		}
		if text, _ := os.ReadFile(filepath.Join(dir, "in/copy/deep/er/b")); len(text) != 1<<20 {
			t.Errorf("extracted deep/er/b: got %d bytes, want %d", len(text), 1<<20)
		}
	}
}

// TestExtract_Truncated checks that Extract returns an error for a truncated archive.
func TestExtract_Truncated(t *testing.T) {
	_, root := newTarget(t)
	b := newArchive(t, tar.Header{Name: "x"})
	b.Truncate(514)
	if err := Extract(b, "x", root, "y", nil); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("got error %v, want \"unexpected EOF\"", err)
	}
}
