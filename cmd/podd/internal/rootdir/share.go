package rootdir

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// ShareMounts makes the mounts below root shared, as the kubelet does. Otherwise a container
// with mount propagation, such as a CSI driver, is not created, or its mounts are not visible
// on the host.
//
// If root lies on a private mount, ShareMounts mounts root on itself. That mount stays,
// because running pods use it, so a later call finds it and changes nothing. ShareMounts
// fails if something is mounted below root already, because the new mount would cover it.
func ShareMounts(root string) error {
	if err := shareMounts(root); err != nil {
		return fmt.Errorf("sharing the mounts below root directory %s: %w", root, err)
	}
	return nil
}

func shareMounts(root string) error {
	root, err := filepath.EvalSymlinks(root) // mountinfo contains real paths
	if err != nil {
		return err
	}
	table, err := mountinfo.GetMounts(nil)
	if err != nil {
		return err
	}
	holder := mountOf(root, table)
	if holder != nil && isShared(holder) {
		return nil
	}
	if holder == nil || holder.Mountpoint != root {
		if i := slices.IndexFunc(table, func(m *mountinfo.Info) bool { return strings.HasPrefix(m.Mountpoint, root+"/") }); i >= 0 {
			return fmt.Errorf("%s is mounted already; run podd down, and restart podd when nothing is mounted there", table[i].Mountpoint)
		}
		if err := unix.Mount(root, root, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind-mounting %s on itself: %w", root, err)
		}
	}
	return unix.Mount("", root, "", unix.MS_SHARED|unix.MS_REC, "")
}

// mountOf returns the mount that path is on, or nil if the table contains no such mount. If
// several mounts contain path, the last one covers the others.
func mountOf(path string, table []*mountinfo.Info) *mountinfo.Info {
	for _, m := range slices.Backward(table) {
		if m.Mountpoint == path || strings.HasPrefix(path, strings.TrimSuffix(m.Mountpoint, "/")+"/") {
			return m
		}
	}
	return nil
}

func isShared(m *mountinfo.Info) bool {
	return slices.ContainsFunc(strings.Fields(m.Optional), func(field string) bool { return strings.HasPrefix(field, "shared:") })
}
