package volume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/sys/mountinfo"
)

func TestIsRelabelable(t *testing.T) {
	table := []*mountinfo.Info{
		{Mountpoint: "/", Options: "rw", VFSOptions: "rw,seclabel"},
		{Mountpoint: "/pods/u/volumes/disk", Options: "rw", VFSOptions: "rw,seclabel"},
		{Mountpoint: "/pods/u/volumes/disk-labeled", Options: "rw", VFSOptions: `rw,context="u:r:t:s0:c1,c2"`},
		{Mountpoint: "/pods/u/volumes/covered", Options: "rw", VFSOptions: "rw,seclabel"},
		{Mountpoint: "/pods/u/volumes/covered", Options: "rw", VFSOptions: "rw"},
		{Mountpoint: "/pods/u/volumes/bound-ro", Options: "ro,relatime", VFSOptions: "rw,seclabel"},
		{Mountpoint: "/pods/u/volumes/ro", Options: "rw", VFSOptions: "ro,seclabel"},
		{Mountpoint: "/pods/u/volumes/option", Options: "rw,seclabel", VFSOptions: "rw"},
	}
	for name, want := range map[string]bool{"disk": true, "disk-labeled": false, "covered": false, "bound-ro": false, "ro": false, "option": true, "no-mount": true} {
		if got := isRelabelable(table, "/pods/u/volumes/"+name); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
	if isRelabelable(nil, "/pods") {
		t.Error("with an empty table: got true, want false")
	}
}

func TestRelabelable(t *testing.T) {
	d := newDir(t)
	must(t, os.MkdirAll(d.Root, 0o755))
	linked := filepath.Join(t.TempDir(), "pods")
	must(t, os.Symlink(d.Root, linked))
	d.Root = linked
	got, err := d.Relabelable(map[string]string{"in": filepath.Join(linked, "u/volumes/a"), "out": "/srv"})
	if err != nil || got["out"] {
		t.Errorf("relabelable volumes: got %v (error %v), want none outside of the directory of the pods", got, err)
	}
}
