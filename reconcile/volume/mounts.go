package volume

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// A mount is an entry of the mount table below Root.
type mount struct {
	path  string // mount point
	rel   string // mount point relative to Root
	what  string // for messages: "tmpfs", "ext4 /dev/sda1"
	whole bool   // whether it is a whole file system, not a bind mount of a part
	fs    string
	id    int // mount ID, unique while the mount exists
	order int // index in the table; of two mounts at one path, the later is on top
}

// mountsBelow returns the mounts at or below Root/under in the order in which they can be
// unmounted: the deepest first, and a mount before those that it covers.
func (d Dir) mountsBelow(under string) ([]mount, error) {
	root, err := filepath.EvalSymlinks(d.Root) // the table has real paths
	if err != nil {
		return nil, err
	}
	table, err := mountinfo.GetMounts(mountinfo.PrefixFilter(filepath.Join(root, under)))
	if err != nil {
		return nil, err
	}
	var found []mount
	for i, m := range table {
		rel, err := filepath.Rel(root, m.Mountpoint)
		if err != nil || rel == "." {
			continue
		}
		found = append(found, mount{
			path:  m.Mountpoint,
			rel:   rel,
			what:  strings.TrimSpace(m.FSType + " " + strings.TrimPrefix(m.Source, m.FSType)),
			whole: m.Root == "/",
			fs:    m.FSType,
			id:    m.ID,
			order: i,
		})
	}
	slices.SortFunc(found, func(a, b mount) int {
		depth := func(m mount) int { return strings.Count(m.rel, "/") }
		return cmp.Or(cmp.Compare(depth(b), depth(a)), cmp.Compare(a.rel, b.rel), cmp.Compare(b.order, a.order))
	})
	return found, nil
}

// ours reports whether the type and the path of a mount are those of mounts that podd
// makes, such as a whole tmpfs or hugetlbfs at
// <uid>/volumes/kubernetes.io~empty-dir/<volume>. at is the path in the pod's directory.
func (m mount) ours() (at string, ok bool) {
	parts := strings.Split(m.rel, "/")
	at = strings.Join(parts[1:], "/")
	switch {
	case len(parts) == 4 && parts[1] == volumesDir && slices.Contains(memoryPlugins, parts[2]):
		return at, m.whole && (m.fs == "tmpfs" || m.fs == "hugetlbfs" && parts[2] == emptyDirPlugin)
	case len(parts) == 4 && parts[1] == volumesDir && parts[2] == nfsPlugin:
		return at, m.nfs()
	case len(parts) == 5 && parts[1] == subPathsDir:
		return at, true
	}
	return "", false
}

func (m mount) nfs() bool { return m.fs == "nfs" || m.fs == "nfs4" }

// remote reports whether accesses to a mount may hang, because they depend on a server or
// on a FUSE program.
func (m mount) remote() bool {
	kind, _, _ := strings.Cut(m.fs, ".") // fuse.sshfs
	return m.nfs() || slices.Contains([]string{"fuse", "cifs", "smb3", "ceph", "9p"}, kind)
}

// memoryPlugins are the directories of memory-backed volumes.
var memoryPlugins = []string{emptyDirPlugin, secret.plugin, downwardAPI.plugin, projected.plugin}
