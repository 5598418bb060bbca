package collect

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMeasureFiles checks that the usage of logs includes neither their directory nor the targets
// of links.
func TestMeasureFiles(t *testing.T) {
	pod := filepath.Join(t.TempDir(), "default_web_u1")
	dir := filepath.Join(pod, "main")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"0.log", "1.log"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 64<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if u, err := MeasureFiles(t.Context(), pod, "main"); err != nil || u.Bytes != 128<<10 || u.Inodes != 2 {
		t.Errorf("got usage %+v (error %v), want 128 KiB in 2 files", u, err)
	}
	if u, err := MeasureFiles(t.Context(), pod, "none"); err != nil || u.Bytes != 0 || u.Inodes != 0 {
		t.Errorf("without logs: got %+v, error %v; want zero and no error", u, err)
	}
	if err := os.Symlink("/", filepath.Join(pod, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"..", "link", "a/b"} {
		if u, err := MeasureFiles(t.Context(), pod, name); err == nil {
			t.Errorf("container %q: got usage %+v, want an error", name, u)
		}
	}
}
