package stack

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/stack/tools"
)

// snapshotter returns the runtime's name for overlayfs if dir can be the upper directory of an
// overlay. Otherwise, for example in a container, it returns a snapshotter that copies files.
func snapshotter(f tools.Flavor, dir string) string {
	overlay, copies := "overlayfs", "native"
	if f == tools.CRIO {
		overlay, copies = "overlay", "vfs"
	}
	if supportsOverlay(dir) {
		return overlay
	}
	return copies
}

// supportsOverlay reports whether an overlay can be mounted with directories in dir.
func supportsOverlay(dir string) bool {
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
