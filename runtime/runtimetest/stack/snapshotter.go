package stack

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/stack/tools"
)

// snapshotter returns the runtime's name for overlayfs if an overlay can be mounted on dir.
// Otherwise it returns a snapshotter that copies files, because dir may be on an overlay, as in
// a container.
func snapshotter(f tools.Flavor, dir string) string {
	overlay, copies := "overlayfs", "native"
	if f == tools.CRIO {
		overlay, copies = "overlay", "vfs"
	}
	if overlays(dir) {
		return overlay
	}
	return copies
}

func overlays(dir string) bool {
	try, err := os.MkdirTemp(dir, "overlay-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(try)
	for _, d := range []string{"lower", "upper", "work", "merged"} {
		if os.Mkdir(filepath.Join(try, d), 0o700) != nil {
			return false
		}
	}
	merged := filepath.Join(try, "merged")
	options := "lowerdir=" + try + "/lower,upperdir=" + try + "/upper,workdir=" + try + "/work"
	if unix.Mount("overlay", merged, "overlay", 0, options) != nil {
		return false
	}
	return unix.Unmount(merged, 0) == nil
}
