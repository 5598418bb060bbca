package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"podd/runtime/beneath"
)

func (n NFS) unmounter() (string, error) {
	return program(n.Unmount, "umount", "install the package mount (Debian, Ubuntu) or util-linux")
}

// unmountRemote takes away what is mounted from a server: as is right at first,
// and then, when it is in use or the server is silent, from the tree of files
// alone. What was not written yet is written once the server is back; to force it
// (umount -f) would fail what other pods have under way with the same server.
//
// From the tree it goes with all that is mounted below it, and is made private
// before: a part of a volume, and what is mounted in that, are copies, and
// unmounting these must not unmount the originals.
func (d Dir) unmountRemote(ctx context.Context, m mount) error {
	umount, lacks := d.NFS.unmounter()
	if lacks != nil {
		return d.detachRemote(ctx, m)
	}
	if left, err := d.umount(ctx, umount, "-cin", m); !left || ctx.Err() != nil {
		return err
	}
	if err := d.makePrivate(ctx, m); err != nil {
		return err
	}
	_, err := d.umount(ctx, umount, "-cinl", m)
	return err
}

// umount runs the program, and says by the mount table whether the mount is left:
// of a program that hangs, too, which only writes what is left. The error is why
// it is.
func (d Dir) umount(ctx context.Context, program, flags string, m mount) (left bool, err error) {
	parent, err := d.parentOf(m)
	if err != nil {
		return true, err
	}
	defer parent.Close()
	// The descriptor says where, so that nothing is looked up on the way; no
	// helper asks the server.
	said, err := runProgram(ctx, d.NFS.patience()/4, parent, program, flags, "/proc/self/fd/3/"+filepath.Base(m.rel))
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	if is, looked := m.isThere(); looked != nil || !is {
		return false, looked
	}
	if errors.Is(err, errSilent) {
		return true, unix.EBUSY
	}
	return true, fmt.Errorf("%s: %s (%w)", m.what, plain(said), err)
}

// makePrivate keeps the end of a mount, and of what is mounted below it, from
// ending others. A mount with nothing below needs that not: where a silent server
// keeps podd from it, that one goes all the same.
func (d Dir) makePrivate(ctx context.Context, m mount) error {
	err := d.withMount(ctx, m, private)
	if err != unix.EBUSY {
		return err
	}
	below, looked := d.mountsBelow(m.rel)
	if looked != nil || slices.ContainsFunc(below, func(b mount) bool { return b.rel != m.rel }) {
		return err
	}
	return nil
}

// detachRemote does without a program what unmountRemote does with one.
func (d Dir) detachRemote(ctx context.Context, m mount) error {
	return d.withMount(ctx, m, func(at string) error {
		if err := private(at); err != nil {
			return err
		}
		return unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	})
}

func private(at string) error { return unix.Mount("", at, "", unix.MS_REC|unix.MS_PRIVATE, "") }

// withMount has call change the mount at a path, and gives up with EBUSY.
func (d Dir) withMount(ctx context.Context, m mount, call func(at string) error) error {
	err := d.Attempts.do(ctx, d.NFS.patience()/4, "changing "+m.path, func(ctx context.Context) error {
		parent, err := d.parentOf(m)
		if err != nil {
			return err
		}
		defer parent.Close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return call(fmt.Sprintf("/proc/self/fd/%d/%s", parent.Fd(), filepath.Base(m.rel)))
	})
	if errors.Is(err, errSilent) || errors.Is(err, errStill) {
		return unix.EBUSY
	}
	return err
}

// parentOf opens the directory that a mount is in, by which it is named: no link
// can lead elsewhere then, and a descriptor of itself would keep it busy.
func (d Dir) parentOf(m mount) (*beneath.Dir, error) {
	pods, err := beneath.Open(d.Root)
	if err != nil {
		return nil, err
	}
	defer pods.Close()
	return pods.SubSameMount(filepath.Dir(m.rel))
}

// isThere asks the mount table for this very mount.
func (m mount) isThere() (bool, error) {
	table, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) {
		return i.ID != m.id || i.Mountpoint != m.path, false
	})
	return len(table) > 0, err
}
