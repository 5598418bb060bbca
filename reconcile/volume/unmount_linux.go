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

func (n NFSOptions) umountProgram() (string, error) {
	return findProgram(n.UnmountPath, "umount", "install the package mount (Debian, Ubuntu) or util-linux")
}

// unmountRemote unmounts a remote mount (see mounts.Mount.IsRemote). If the mount is in use or the
// server does not respond, it is unmounted lazily. In that case the kernel writes unwritten data
// when the server responds again. podd does not force the unmount (umount -f), because that would
// make requests of other pods to the same server fail.
//
// A lazy unmount includes all mounts below the mount. Some of them are bind mounts: the mounts of
// subPaths and the mounts below them. All these mounts are made private first, so that the
// originals of the bind mounts stay mounted.
func (d Dir) unmountRemote(ctx context.Context, m mounts.Mount) error {
	umount, err := d.NFS.umountProgram()
	if err != nil {
		return d.detachRemote(ctx, m)
	}
	if stillExists, err := d.runUmount(ctx, umount, "-cin", m); !stillExists || ctx.Err() != nil {
		return err
	}
	if err := d.makePrivate(ctx, m); err != nil {
		return err
	}
	_, err = d.runUmount(ctx, umount, "-cinl", m)
	return err
}

// runUmount runs the program umount. stillExists reports whether the mount table still contains the
// mount, and err is the reason. If umount hangs, it may already have removed the mount, because
// umount writes unwritten data after that.
func (d Dir) runUmount(ctx context.Context, program, flags string, m mounts.Mount) (stillExists bool, err error) {
	parent, err := d.openParent(m)
	if err != nil {
		return true, err
	}
	defer parent.Close()
	// The path refers to a file descriptor, so that neither a path lookup nor a mount helper
	// accesses the server.
	output, err := runProgram(ctx, d.NFS.timeout()/4, parent, program, flags, "/proc/self/fd/3/"+filepath.Base(m.Rel))
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	if exists, existsErr := m.Exists(); existsErr != nil || !exists {
		return false, existsErr
	}
	if errors.Is(err, errTimeout) {
		return true, unix.EBUSY
	}
	if err == nil {
		err = errors.New("the mount still exists")
	}
	return true, fmt.Errorf("%s: %s (%w)", m.Description, oneLine(output), err)
}

// makePrivate makes a mount and all mounts below it private, so that unmounting them does not
// unmount their originals. If the server does not respond, the call times out. After a timeout,
// makePrivate returns nil if there are no mounts below the mount, because only these mounts need to
// be private.
func (d Dir) makePrivate(ctx context.Context, m mounts.Mount) error {
	err := d.withMount(ctx, m, makeMountPrivate)
	if err != unix.EBUSY {
		return err
	}
	below, belowErr := d.mountsBelow(m.Rel)
	if belowErr != nil || slices.ContainsFunc(below, func(b mounts.Mount) bool { return b.Rel != m.Rel }) {
		return err
	}
	return nil
}

// detachRemote unmounts a remote mount like unmountRemote, but without the program umount.
func (d Dir) detachRemote(ctx context.Context, m mounts.Mount) error {
	return d.withMount(ctx, m, func(path string) error {
		if err := makeMountPrivate(path); err != nil {
			return err
		}
		return unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	})
}

func makeMountPrivate(path string) error {
	return unix.Mount("", path, "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// withMount calls call with a path that refers to the mount m and contains no links. It returns
// EBUSY after a timeout.
func (d Dir) withMount(ctx context.Context, m mounts.Mount, call func(path string) error) error {
	err := d.CallLimiter.do(ctx, d.NFS.timeout()/4, "changing "+m.Path, func(ctx context.Context) error {
		parent, err := d.openParent(m)
		if err != nil {
			return err
		}
		defer parent.Close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return call(fmt.Sprintf("/proc/self/fd/%d/%s", parent.Fd(), filepath.Base(m.Rel)))
	})
	if errors.Is(err, errTimeout) || errors.Is(err, errPending) {
		return unix.EBUSY
	}
	return err
}

// openParent opens the parent directory of a mount. Callers access the mount through its parent, so
// that no link is followed. A file descriptor of the mount itself would keep the mount busy. The
// caller must close the result.
func (d Dir) openParent(m mounts.Mount) (*safepath.Dir, error) {
	pods, err := safepath.Open(d.Root)
	if err != nil {
		return nil, err
	}
	defer pods.Close()
	return pods.SubSameMount(filepath.Dir(m.Rel))
}
