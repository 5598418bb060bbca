// Package mounts reads the part of the kernel's mount table below a directory.
package mounts

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"

	"podd/manifest/order"
)

// A Mount is an entry of the mount table below a directory.
type Mount struct {
	// Path is the absolute path of the mount point. Rel is the path relative to the directory.
	Path, Rel string
	// Description describes the mounted file system in messages, such as "tmpfs" or
	// "ext4 /dev/sda1".
	Description string
	// IsFilesystemRoot reports whether the root of the file system is mounted at this mount point,
	// and not a subdirectory.
	IsFilesystemRoot bool
	// Type is the type of the file system, such as "nfs4".
	Type string

	id    int // mount ID, unique while the mount exists
	order int // index in the table; if two mounts have the same path, the later one is on top
}

// Below returns the mounts at or below root/under, except mounts at root itself. Mount.Rel is
// relative to root. The mounts can be unmounted in the order of the result: deeper mounts precede
// the mounts above them, and a mount precedes the mounts that it covers. If root does not exist,
// the error satisfies errors.Is(err, fs.ErrNotExist).
func Below(root, under string) ([]Mount, error) {
	root, err := filepath.EvalSymlinks(root) // the table contains paths without symbolic links
	if err != nil {
		return nil, err
	}
	table, err := mountinfo.GetMounts(mountinfo.PrefixFilter(filepath.Join(root, under)))
	if err != nil {
		return nil, err
	}
	var below []Mount
	for i, m := range table {
		rel, err := filepath.Rel(root, m.Mountpoint)
		if err != nil || rel == "." {
			continue
		}
		below = append(below, Mount{
			Path:             m.Mountpoint,
			Rel:              rel,
			Description:      strings.TrimSpace(m.FSType + " " + strings.TrimPrefix(m.Source, m.FSType)),
			IsFilesystemRoot: m.Root == "/",
			Type:             m.FSType,
			id:               m.ID,
			order:            i,
		})
	}
	order.Slice(below, func(a, b Mount) int {
		depth := func(m Mount) int { return strings.Count(m.Rel, "/") }
		return cmp.Or(cmp.Compare(depth(b), depth(a)), cmp.Compare(a.Rel, b.Rel), cmp.Compare(b.order, a.order))
	})
	return below, nil
}

// IsNFS reports whether the file system is mounted by the NFS client of Linux.
func (m Mount) IsNFS() bool { return m.Type == "nfs" || m.Type == "nfs4" }

// IsRemote reports whether the file system depends on a server or on a FUSE program, so that
// accesses to the mount may hang.
func (m Mount) IsRemote() bool {
	kind, _, _ := strings.Cut(m.Type, ".") // such as fuse.sshfs
	return m.IsNFS() || slices.Contains([]string{"fuse", "cifs", "smb3", "ceph", "9p"}, kind)
}

// Exists reports whether the mount is still in the mount table.
func (m Mount) Exists() (bool, error) {
	table, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) {
		return i.ID != m.id || i.Mountpoint != m.Path, false
	})
	return len(table) > 0, err
}
