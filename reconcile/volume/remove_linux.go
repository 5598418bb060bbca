package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/volume/csi"
	"podd/runtime/beneath"
)

// MountError says that mounts keep a pod's directory from going.
type MountError struct {
	UID types.UID
	// Mounts are the mount points that are left: those that podd did not make
	// before its own, and then the deepest first.
	Mounts []string
	// Busy says that all of them are podd's own and in use: trying again later
	// helps. Otherwise somebody else mounted the first, and has to unmount it.
	Busy bool
	what string
}

func (e *MountError) Error() string {
	why := "was not mounted by podd; umount it"
	if e.Busy {
		why = "is in use; podd tries again (fuser -vm shows by whom)"
	}
	more := ""
	if n := len(e.Mounts) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("removing the directory of pod %s: %s at %s %s%s", e.UID, e.what, e.Mounts[0], why, more)
}

// Remove unmounts what podd mounted for a pod and removes its directory; one
// that is gone already is nil. While a mount is left the directory stays, and
// a *MountError says which. The journal in it goes last: a removal that was
// interrupted is found and finished by whoever lists the directories next.
func (d Dir) Remove(ctx context.Context, uid types.UID) error {
	return d.clear(ctx, uid, func(pods *beneath.Dir) error {
		pod, err := pods.SubSameMount(string(uid))
		if err == nil {
			err = pod.Empty(ctx, journal)
			pod.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, beneath.ErrLink) {
			return err
		}
		return pods.RemoveAll(ctx, string(uid))
	})
}

// Release unmounts and removes the volumes of a pod at rest, as Remove does,
// and leaves the rest of its directory.
func (d Dir) Release(ctx context.Context, uid types.UID) error {
	return d.clear(ctx, uid, func(pods *beneath.Dir) error {
		pod, err := pods.SubSameMount(string(uid))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer pod.Close()
		return errors.Join(pod.RemoveAll(ctx, subPathsDir), pod.RemoveAll(ctx, volumesDir), pod.RemoveAll(ctx, csi.DevicesDir))
	})
}

func (d Dir) clear(ctx context.Context, uid types.UID, remove func(pods *beneath.Dir) error) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	pods, err := d.open()
	if pods == nil {
		return err
	}
	defer pods.Close()
	err = d.unmount(ctx, uid)
	if err == nil {
		err = remove(pods)
	}
	var known *MountError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, beneath.ErrMount): // mounted since the table was read
		var at *fs.PathError
		errors.As(err, &at)
		return &MountError{UID: uid, Mounts: []string{at.Path}, what: "a mount"}
	}
	return fmt.Errorf("removing the directory of pod %s: %w", uid, err)
}

// unmount takes away podd's own mounts below a pod's directory, and has CSI drivers
// take away theirs then: copies of parts of these are podd's.
func (d Dir) unmount(ctx context.Context, uid types.UID) error {
	if err := d.unmountOurs(ctx, uid); err != nil {
		return err
	}
	if err := d.unpublish(ctx, uid); err != nil {
		return err
	}
	left, err := d.mountsBelow(string(uid))
	if err != nil || len(left) == 0 {
		return err
	}
	return leftError(uid, left)
}

// unmountOurs takes no volume of this machine away lazily: a detached tmpfs lives
// on, unseen, for as long as anything uses it.
func (d Dir) unmountOurs(ctx context.Context, uid types.UID) error {
	mounts, err := d.mountsBelow(string(uid))
	if err != nil || len(mounts) == 0 {
		return err
	}
	covered := "" // a mount point whose topmost mount stays
	for _, m := range mounts {
		_, ok := m.ours()
		if !ok || m.rel == covered {
			covered = m.rel
			continue
		}
		take := d.unmountLocal
		if m.remote() {
			take = d.unmountRemote
		}
		if err := take(ctx, m); err != nil {
			covered = m.rel
			if !stays(err) {
				return fmt.Errorf("unmounting %s: %w", m.path, err)
			}
		}
	}
	return nil
}

// stays tells a mount that is in use, covered by another or gone meanwhile from
// one that cannot be unmounted.
func stays(err error) bool {
	return err == unix.EBUSY || err == unix.EINVAL || errors.Is(err, beneath.ErrMount) || errors.Is(err, fs.ErrNotExist)
}

func leftError(uid types.UID, left []mount) error {
	slices.SortStableFunc(left, func(a, b mount) int {
		_, oursA := a.ours()
		_, oursB := b.ours()
		switch {
		case oursA == oursB:
			return 0
		case oursA:
			return 1
		}
		return -1
	})
	e := &MountError{UID: uid, what: left[0].what}
	_, e.Busy = left[0].ours()
	for _, m := range left {
		e.Mounts = append(e.Mounts, m.path)
	}
	return e
}

func (d Dir) unmountLocal(_ context.Context, m mount) error {
	parent, err := d.parentOf(m)
	if err != nil {
		return err
	}
	defer parent.Close()
	if strings.Contains(m.rel, "/"+subPathsDir+"/") {
		return detach(parent, filepath.Base(m.rel))
	}
	return unix.Unmount(fmt.Sprintf("/proc/self/fd/%d/%s", parent.Fd(), filepath.Base(m.rel)), unix.UMOUNT_NOFOLLOW)
}
