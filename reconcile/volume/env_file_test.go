package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podd/reconcile/render"
)

// TestReadEnvFiles checks that only regular files of the volume are read, and that a missing file
// is not an error.
func TestReadEnvFiles(t *testing.T) {
	d := newDir(t)
	pod := newPod(emptyDirVolume("vars", "", ""))
	volumes, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	top := volumes["vars"]
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("A='1'"), 0o600))
	must(t, os.Mkdir(filepath.Join(top, "dir"), 0o700))
	must(t, os.WriteFile(filepath.Join(top, "dir/a.env"), []byte("A='1'"), 0o600))
	must(t, os.Symlink("dir/a.env", filepath.Join(top, "link")))
	must(t, os.Symlink(outside, filepath.Join(top, "absolute")))
	must(t, os.Symlink("../../../../../../etc/passwd", filepath.Join(top, "parent")))
	must(t, unix.Mkfifo(filepath.Join(top, "fifo"), 0o600))
	must(t, os.WriteFile(filepath.Join(top, "large"), []byte(strings.Repeat("#", 1<<20+1)), 0o600))

	file := func(path string) render.EnvFile { return render.EnvFile{Volume: "vars", Path: path} }
	got, err := d.ReadEnvFiles(pod, volumes, []render.EnvFile{file("dir/a.env"), file("link"), file("/dir/a.env"), file("none"), file("dir/none")})
	must(t, err)
	want := map[render.EnvFile]string{file("dir/a.env"): "A='1'", file("link"): "A='1'", file("/dir/a.env"): "A='1'"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{
		"absolute": "leads out of the directory",
		"parent":   "leads out of the directory",
		"fifo":     "not a regular file",
		"dir":      "not a regular file",
		"large":    "larger than 1048576 bytes",
	} {
		_, err := d.ReadEnvFiles(pod, volumes, []render.EnvFile{file(path)})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"`+path+`" of volume "vars" of pod`) {
			t.Errorf("%s: got error %v, want %q", path, err, want)
		}
	}
}
