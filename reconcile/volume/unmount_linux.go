package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"podd/reconcile/volume/mounts"
	"podd/runtime/safepath"
)

func (n NFS) unmounter() (string, error) {
	return program(n.Unmount, "umount", "install the package mount (Debian, Ubuntu) or util-linux")
}

// unmountRemote unmounts a mount from a server. If the mount is in use or the server does
// not respond, it is unmounted lazily; unwritten data is then written when the server
// responds again. A forced unmount (umount -f) would make requests of other pods to the
// same server fail.
//
// A lazy unmount includes all mounts below. They are made private first, because the mounts
// of subPaths, and those below them, are copies, and their originals must not be unmounted.
func (d Dir) unmountRemote(ctx context.Context, m mounts.Mount) error {
	umount, lacks := d.NFS.unmounter()
	if lacks != nil {
		return d.detachRemote(ctx, m)
	}
	if remaining, err := d.umount(ctx, umount, "-cin", m); !remaining || ctx.Err() != nil {
		return err
	}
	if err := d.makePrivate(ctx, m); err != nil {
		return err
	}
	_, err := d.umount(ctx, umount, "-cinl", m)
	return err
}

// umount runs the program umount. remaining reports whether the mount still exists according
// to the mount table, also for a program that hangs because it writes remaining data. The
// error is the reason.
func (d Dir) umount(ctx context.Context, program, flags string, m mounts.Mount) (remaining bool, err error) {
	parent, err := d.parentOf(m)
	if err != nil {
		return true, err
	}
	defer parent.Close()
	// The path is that of a descriptor, so that no path lookup and no helper contacts the
	// server.
	output, err := runProgram(ctx, d.NFS.timeout()/4, parent, program, flags, "/proc/self/fd/3/"+filepath.Base(m.Rel))
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	if is, looked := m.Exists(); looked != nil || !is {
		return false, looked
	}
	if errors.Is(err, errSilent) {
		return true, unix.EBUSY
	}
	return true, fmt.Errorf("%s: %s (%w)", m.Text, oneLine(output), err)
}

// makePrivate makes a mount and those below it private, so that unmounting them does not
// unmount others. If this times out because the server does not respond, it returns nil for
// a mount without others below, which need not be private.
func (d Dir) makePrivate(ctx context.Context, m mounts.Mount) error {
	err := d.withMount(ctx, m, private)
	if err != unix.EBUSY {
		return err
	}
	below, looked := d.mountsBelow(m.Rel)
	if looked != nil || slices.ContainsFunc(below, func(b mounts.Mount) bool { return b.Rel != m.Rel }) {
		return err
	}
	return nil
}

// detachRemote is like unmountRemote, but without the program umount.
func (d Dir) detachRemote(ctx context.Context, m mounts.Mount) error {
	return d.withMount(ctx, m, func(at string) error {
		if err := private(at); err != nil {
			return err
		}
		return unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	})
}

func private(at string) error { return unix.Mount("", at, "", unix.MS_REC|unix.MS_PRIVATE, "") }

// withMount runs call with the path of a mount. It returns EBUSY after a timeout.
func (d Dir) withMount(ctx context.Context, m mounts.Mount, call func(at string) error) error {
	err := d.Attempts.do(ctx, d.NFS.timeout()/4, "changing "+m.Path, func(ctx context.Context) error {
		parent, err := d.parentOf(m)
		if err != nil {
			return err
		}
		defer parent.Close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return call(fmt.Sprintf("/proc/self/fd/%d/%s", parent.Fd(), filepath.Base(m.Rel)))
	})
	if errors.Is(err, errSilent) || errors.Is(err, errPending) {
		return unix.EBUSY
	}
	return err
}

// parentOf opens the parent directory of a mount. The mount is accessed through it, so that
// no link is followed; a descriptor of the mount itself would keep it busy.
func (d Dir) parentOf(m mounts.Mount) (*safepath.Dir, error) {
	pods, err := safepath.Open(d.Root)
	if err != nil {
		return nil, err
	}
	defer pods.Close()
	return pods.SubSameMount(filepath.Dir(m.Rel))
}
