package archive

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// target is a directory to extract into, beside a file that must stay as it is.
func target(t *testing.T) (dir string, root *os.Root) {
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

func tarOf(t *testing.T, entries ...tar.Header) *bytes.Buffer {
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

// TestHostile: whatever a container says is an archive, nothing outside of the
// target is touched.
func TestHostile(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(dir string) error
		entries []tar.Header
		want    string // of the error
		skipped string
	}{
		"up":          {entries: []tar.Header{{Name: "../outside"}}, want: "leads up"},
		"up, inside":  {entries: []tar.Header{{Name: "x/a/../../../outside"}}, want: "leads up"},
		"root":        {entries: []tar.Header{{Name: "/outside"}}, want: "begins at the root"},
		"unasked":     {entries: []tar.Header{{Name: "other"}}, want: "not below x"},
		"near name":   {entries: []tar.Header{{Name: "xy"}}, want: "not below x"},
		"through":     {entries: []tar.Header{{Name: "x", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "x/outside"}}, skipped: "x: a link"},
		"hard link":   {entries: []tar.Header{{Name: "x/l", Typeflag: tar.TypeLink, Linkname: "../outside"}}, want: "leads up"},
		"hard to own": {entries: []tar.Header{{Name: "x/l", Typeflag: tar.TypeLink, Linkname: "x/none"}}, skipped: "x/l: a link to what is not there"},
		"device":      {entries: []tar.Header{{Name: "x", Typeflag: tar.TypeBlock}}, skipped: "x: no file"},
		"fifo":        {entries: []tar.Header{{Name: "x", Typeflag: tar.TypeFifo}}, skipped: "x: no file"},
		"old link":    {before: func(dir string) error { return os.Symlink("../outside", filepath.Join(dir, "in/y")) }, entries: []tar.Header{{Name: "x"}}},
		"old link up": {
			before: func(dir string) error { return os.Symlink("..", filepath.Join(dir, "in/y")) }, entries: []tar.Header{{Name: "x/outside"}}, want: "escapes",
		},
		"link as directory": {
			before: func(dir string) error { return os.Symlink("..", filepath.Join(dir, "in/y")) }, entries: []tar.Header{{Name: "x", Typeflag: tar.TypeDir}}, want: "no directory",
		},
		"directory in the way": {
			before: func(dir string) error { return os.Mkdir(filepath.Join(dir, "in/y"), 0o700) }, entries: []tar.Header{{Name: "x"}}, want: "a directory here",
		},
		"nothing": {want: "the archive is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, root := target(t)
			if c.before != nil {
				if err := c.before(dir); err != nil {
					t.Fatal(err)
				}
			}
			var skipped []string
			err := Extract(tarOf(t, c.entries...), "x", root, "y", func(entry, why string) { skipped = append(skipped, entry+": "+why) })
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if got := strings.Join(skipped, ";"); got != c.skipped {
				t.Errorf("skipped %q, want %q", got, c.skipped)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "outside")); string(text) != "safe" {
				t.Errorf("outside there is %q, %v", text, err)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 2 {
				t.Errorf("outside there are %v", entries)
			}
		})
	}
}

// TestThereAndBack: what is written is what is extracted.
func TestThereAndBack(t *testing.T) {
	from := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(from, "src/deep/er"), 0o755),
		os.Mkdir(filepath.Join(from, "src/empty"), 0o700),
		os.WriteFile(filepath.Join(from, "src/a"), []byte("one"), 0o600),
		os.WriteFile(filepath.Join(from, "src/deep/er/b"), bytes.Repeat([]byte("b"), 1<<20), 0o755),
		os.Symlink("a", filepath.Join(from, "src/link")),
		os.Symlink("src", filepath.Join(from, "way")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, local := range []string{"src", "way"} {
		var b bytes.Buffer
		none := func(entry, why string) { t.Errorf("left out: %s: %s", entry, why) }
		if err := Write(&b, filepath.Join(from, local), "it", none); err != nil {
			t.Fatal(err)
		}
		dir, root := target(t)
		links := 0
		if err := Extract(&b, "it", root, "copy", func(string, string) { links++ }); err != nil || links != 1 {
			t.Fatalf("%v, %d links", err, links)
		}
		for name, mode := range map[string]os.FileMode{"a": 0o600, "deep/er/b": 0o755, "empty": 0o700 | os.ModeDir} {
			info, err := os.Stat(filepath.Join(dir, "in/copy", name))
			if err != nil || info.Mode() != mode {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
		if text, _ := os.ReadFile(filepath.Join(dir, "in/copy/deep/er/b")); len(text) != 1<<20 {
			t.Errorf("%d bytes", len(text))
		}
	}
}

// TestCut: an archive that ends early is an error.
func TestCut(t *testing.T) {
	_, root := target(t)
	b := tarOf(t, tar.Header{Name: "x"})
	b.Truncate(514)
	if err := Extract(b, "x", root, "y", nil); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Error(err)
	}
}
