package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"podd/runtime/runtimetest/loopdisk"
)

// TestPressureObserver_BtrfsSubvolumes checks that the subvolumes of a Btrfs file system count as one
// file system, and two Btrfs file systems as different ones.
func TestPressureObserver_BtrfsSubvolumes(t *testing.T) {
	disk, other := mountBtrfs(t), mountBtrfs(t)
	dir := func(name string) string { return filepath.Join(disk, name) }
	for _, name := range []string{"images", "layers"} {
		if out, err := exec.Command("btrfs", "subvolume", "create", dir(name)).CombinedOutput(); err != nil {
			t.Fatalf("creating a subvolume: %v: %s", err, out)
		}
	}
	p := &PressureObserver{}
	p.o.MeasureAllPods = func() (int64, int64, error) { return 0, 0, nil }
	p.o.RootDir, p.storage = disk, storage{images: dir("images"), layers: dir("layers")}
	if l := p.Observe().Layout; l.Nodefs == 0 || l.Imagefs != l.Nodefs || l.Containerfs != l.Nodefs {
		t.Errorf("subvolumes: got layout %+v, want the same file system for all", l)
	}
	p.storage.images = other
	if l := p.Observe().Layout; l.Imagefs == 0 || l.Imagefs == l.Nodefs || l.Containerfs != l.Nodefs {
		t.Errorf("images in another Btrfs file system: got layout %+v, want another file system for images only", l)
	}
}

// mountBtrfs mounts an empty Btrfs file system until the test ends, and returns its mount point. It
// skips the test if this is not possible on the host.
func mountBtrfs(t *testing.T) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 128<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.btrfs", "-q", image).CombinedOutput(); err != nil {
		t.Skipf("creating a Btrfs file system: %v: %s", err, out)
	}
	if err := loopdisk.Mount(image, dir); err != nil {
		t.Skipf("mounting a Btrfs file system: %v", err)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("unmounting %s: %v: %s", dir, err, out)
		}
	})
	return dir
}
