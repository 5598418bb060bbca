package stack

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// snapshotter is overlayfs where an overlay can be mounted on dir, else
// native, which copies: dir may itself lie on an overlay, as in a container.
func snapshotter(dir string) string {
	if overlays(dir) {
		return "overlayfs"
	}
	return "native"
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
