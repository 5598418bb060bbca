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
	"podd/reconcile/volume/mounts"
	"podd/reconcile/volume/subpath"
	"podd/runtime/safepath"
)

// A MountError reports that a pod's directory was not removed because of mounts in it.
type MountError struct {
	UID types.UID
	// Mounts has the remaining mount points: those that podd did not make first, and
	// then the deepest first.
	Mounts []string
	// Busy reports whether podd made all of them and they are in use, so that a retry
	// may succeed. Otherwise the first was mounted by others, who must unmount it.
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

// Remove unmounts podd's mounts for a pod and removes its directory. It returns nil if the
// directory does not exist, and a *MountError if mounts remain; the directory is then kept.
// The journal is removed last, so that an interrupted removal is found and completed when
// the directories are listed again.
func (d Dir) Remove(ctx context.Context, uid types.UID) error {
	return d.clear(ctx, uid, func(pods *safepath.Dir) error {
		pod, err := pods.SubSameMount(string(uid))
		if err == nil {
			err = pod.RemoveContents(ctx, journal)
			pod.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, safepath.ErrLink) {
			return err
		}
		return pods.RemoveAll(ctx, string(uid))
	})
}

// Release unmounts and removes the volumes of a finished pod, like Remove, and its hosts
// file. It keeps the end of termination messages and the rest of the directory.
func (d Dir) Release(ctx context.Context, uid types.UID) error {
	return d.clear(ctx, uid, func(pods *safepath.Dir) error {
		pod, err := pods.SubSameMount(string(uid))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer pod.Close()
		return errors.Join(pod.RemoveAll(ctx, subpath.Dir), pod.RemoveAll(ctx, volumesDir), pod.RemoveAll(ctx, csi.DevicesDir), freeFiles(pod))
	})
}

func (d Dir) clear(ctx context.Context, uid types.UID, remove func(pods *safepath.Dir) error) error {
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
	case errors.Is(err, safepath.ErrMount): // mounted after the mount table was read
		var at *fs.PathError
		errors.As(err, &at)
		return &MountError{UID: uid, Mounts: []string{at.Path}, what: "a mount"}
	}
	return fmt.Errorf("removing the directory of pod %s: %w", uid, err)
}

// unmount unmounts podd's own mounts below a pod's directory, and then makes CSI drivers
// unpublish theirs, because podd's subPath mounts may be copies of them.
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
	return remainingError(uid, left)
}

// unmountOurs unmounts podd's own mounts. Local volumes are not unmounted lazily, because a
// detached tmpfs would continue to use memory unnoticed while it is in use.
func (d Dir) unmountOurs(ctx context.Context, uid types.UID) error {
	mounts, err := d.mountsBelow(string(uid))
	if err != nil || len(mounts) == 0 {
		return err
	}
	covered := "" // a mount point that keeps its topmost mount
	for _, m := range mounts {
		_, ok := isOurs(m)
		if !ok || m.Rel == covered {
			covered = m.Rel
			continue
		}
		take := d.unmountLocal
		if m.IsRemote() {
			take = d.unmountRemote
		}
		if err := take(ctx, m); err != nil {
			covered = m.Rel
			if !isRetryable(err) {
				return fmt.Errorf("unmounting %s: %w", m.Path, err)
			}
		}
	}
	return nil
}

// isRetryable reports whether err means that a mount is in use, covered by another one or
// already unmounted.
func isRetryable(err error) bool {
	return err == unix.EBUSY || err == unix.EINVAL || errors.Is(err, safepath.ErrMount) || errors.Is(err, fs.ErrNotExist)
}

func remainingError(uid types.UID, left []mounts.Mount) error {
	slices.SortStableFunc(left, func(a, b mounts.Mount) int {
		_, oursA := isOurs(a)
		_, oursB := isOurs(b)
		switch {
		case oursA == oursB:
			return 0
		case oursA:
			return 1
		}
		return -1
	})
	e := &MountError{UID: uid, what: left[0].Text}
	_, e.Busy = isOurs(left[0])
	for _, m := range left {
		e.Mounts = append(e.Mounts, m.Path)
	}
	return e
}

func (d Dir) unmountLocal(_ context.Context, m mounts.Mount) error {
	parent, err := d.parentOf(m)
	if err != nil {
		return err
	}
	defer parent.Close()
	if strings.Contains(m.Rel, "/"+subpath.Dir+"/") {
		return subpath.Unbind(parent, filepath.Base(m.Rel))
	}
	return unix.Unmount(fmt.Sprintf("/proc/self/fd/%d/%s", parent.Fd(), filepath.Base(m.Rel)), unix.UMOUNT_NOFOLLOW)
}
