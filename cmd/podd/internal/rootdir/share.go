package rootdir

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// ShareMounts makes the mounts below the root directory shared (mount propagation), as the kubelet
// does. Some containers, such as CSI drivers, have volume mounts with mount propagation. Without
// shared mounts, the runtime cannot create such a container, or its mounts are not visible on the
// host.
//
// If root is on a private mount, ShareMounts bind-mounts root on itself. podd never unmounts this
// mount, because running pods use it. Therefore a later call changes nothing. ShareMounts returns
// an error if there is already a mount below root, because the new mount would cover that mount.
func ShareMounts(root string) error {
	if err := shareMounts(root); err != nil {
		return fmt.Errorf("sharing the mounts below root directory %s: %w", root, err)
	}
	return nil
}

// shareMounts calls the system calls of ShareMounts. Its errors do not name the root directory.
func shareMounts(root string) error {
	root, err := filepath.EvalSymlinks(root) // mountinfo contains no symlinks
	if err != nil {
		return err
	}
	table, err := mountinfo.GetMounts(nil)
	if err != nil {
		return err
	}
	mount := findMount(root, table)
	if mount != nil && isShared(mount) {
		return nil
	}
	if mount == nil || mount.Mountpoint != root {
		if i := slices.IndexFunc(table, func(m *mountinfo.Info) bool { return strings.HasPrefix(m.Mountpoint, root+"/") }); i >= 0 {
			return fmt.Errorf("a file system is already mounted at %s; run \"podd down\", unmount this file system, and start podd again", table[i].Mountpoint)
		}
		if err := unix.Mount(root, root, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind-mounting %s on itself: %w", root, err)
		}
	}
	return unix.Mount("", root, "", unix.MS_SHARED|unix.MS_REC, "")
}

// findMount returns the mount that contains path, or nil if there is none in table. If several
// mounts contain path, findMount returns the last mount, because it covers the other mounts.
func findMount(path string, table []*mountinfo.Info) *mountinfo.Info {
	for _, m := range slices.Backward(table) {
		if m.Mountpoint == path || strings.HasPrefix(path, strings.TrimSuffix(m.Mountpoint, "/")+"/") {
			return m
		}
	}
	return nil
}

// isShared reports whether a mount propagates the mounts below it to other mount namespaces.
func isShared(m *mountinfo.Info) bool {
	return slices.ContainsFunc(strings.Fields(m.Optional), func(field string) bool { return strings.HasPrefix(field, "shared:") })
}
