package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// TestClaim_BlockDevice checks that the path of a claim with volumeMode Block is the path of the
// device without links, and that other files are rejected.
func TestClaim_BlockDevice(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	at := func(name string) string { return filepath.Join(top, name) }
	// The device has no driver, so that opening it would fail.
	must(t, unix.Mknod(at("disk"), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 250))))
	must(t, unix.Mknod(at("null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	must(t, os.WriteFile(at("file"), nil, 0o600))
	must(t, os.Symlink("disk", at("by-id")))
	must(t, os.Symlink("file", at("link")))
	for _, tt := range []struct{ path, want, err string }{
		{"disk", "disk", ""},
		{"by-id", "disk", ""},
		{"none", "", `the device of the PersistentVolume "x" does not exist`},
		{"file", "", "is a file, but the PersistentVolume"},
		{"link", "", "is a file"},
		{"null", "", "is a character device"},
		{".", "", "is a directory"},
	} {
		d, _ := newDirWithClaims(t)
		c := newClaim("file", localVolume("x", at(tt.path)))
		block, gid := v1.PersistentVolumeBlock, int64(4321)
		c.Spec.VolumeMode, c.Volume.Spec.VolumeMode = &block, &block
		pod := newClaimPod()
		pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &gid}
		checked := d.Check(t.Context(), pod, c, nil)
		paths, err := d.Prepare(t.Context(), pod, c)
		if tt.err == "" {
			must(t, checked)
			must(t, err)
			if paths["data"] != at(tt.want) {
				t.Errorf("%s: got path %s, want %s", tt.path, paths["data"], at(tt.want))
			}
		} else if err == nil || checked == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(checked.Error(), tt.err) {
			t.Errorf("%s: got errors %v from Prepare and %v from Check; want %q", tt.path, err, checked, tt.err)
		}
		must(t, d.Remove(t.Context(), uid))
	}
	var st unix.Stat_t
	if must(t, unix.Stat(at("disk"), &st)); st.Gid == 4321 || st.Mode&0o777 != 0o600 {
		t.Errorf("owner and mode of the device: got %+v, want no change", st)
	}
}
