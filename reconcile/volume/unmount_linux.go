package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"podd/runtime/beneath"
)

func (n NFS) unmounter() (string, error) {
	return program(n.Unmount, "umount", "install the package mount (Debian, Ubuntu) or util-linux")
}

// unmountAt takes away what is mounted from a server: as is right at first, and
// then, when it is in use or the server is silent, from the tree of files alone.
// What was not written yet is written once the server is back; to force it
// (umount -f) would fail what other pods have under way with the same server.
func (n NFS) unmountAt(ctx context.Context, pods *beneath.Dir, at string, m mount) error {
	umount, err := n.unmounter()
	if err != nil {
		return err
	}
	parent, err := pods.SubSameMount(filepath.Dir(at))
	if err != nil {
		return err
	}
	defer parent.Close()
	// The descriptor says where, so that nothing is looked up on the way; no
	// helper asks the server.
	target := "/proc/self/fd/3/" + filepath.Base(at)
	var last error
	for _, flags := range []string{"-cin", "-cinl"} {
		said, err := runProgram(ctx, n.patience()/4, parent, umount, flags, target)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if is, looked := m.isThere(); looked != nil || !is {
			return looked // of a program that hangs, too: it only writes what is left
		}
		last = fmt.Errorf("%s: %s (%w)", m.what, plain(said), err)
	}
	if errors.Is(last, errSilent) {
		return unix.EBUSY
	}
	return last
}

// isThere asks the mount table for this very mount.
func (m mount) isThere() (bool, error) {
	table, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) {
		return i.ID != m.id || i.Mountpoint != m.path, false
	})
	return len(table) > 0, err
}
