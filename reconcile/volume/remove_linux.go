package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/order"
	"podd/reconcile/volume/csi"
	"podd/reconcile/volume/mounts"
	"podd/reconcile/volume/subpath"
	"podd/runtime/safepath"
)

// A remainingMountsError reports that a pod's directory was not removed because of mounts in it.
type remainingMountsError struct {
	UID types.UID
	// Mounts contains the remaining mount points. Mounts of other programs precede podd's mounts.
	// In both groups, deeper mounts precede the mounts above them.
	Mounts []string
	// Busy reports whether podd created all of the mounts. Such mounts remain only because they are
	// in use, and a retry may succeed. If Busy is false, another program created the first mount,
	// and the user must unmount it.
	Busy        bool
	description string
}

func (e *remainingMountsError) Error() string {
	cause := "was not mounted by podd; unmount it"
	if e.Busy {
		cause = "is in use; podd retries (fuser -vm lists the processes)"
	}
	suffix := ""
	if n := len(e.Mounts) - 1; n > 0 {
		suffix = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("removing the directory of pod %s: %s at %s %s%s", e.UID, e.description, e.Mounts[0], cause, suffix)
}

// Remove unmounts podd's mounts for a pod and removes the pod's directory. It returns nil if the
// directory does not exist. If mounts remain, it keeps the directory and returns an error. The
// journal is removed last, so that podd can detect and complete an interrupted removal after a
// restart.
func (d Dir) Remove(ctx context.Context, uid types.UID) error {
	return d.unmountAndRemove(ctx, uid, func(pods *safepath.Dir) error {
		pod, err := pods.SubSameMount(string(uid))
		if err == nil {
			err = pod.RemoveContents(ctx, journalName)
			pod.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, safepath.ErrLink) {
			return err
		}
		return pods.RemoveAll(ctx, string(uid))
	})
}

// Release unmounts and removes the volumes of a finished pod, like Remove. It also removes the
// pod's hosts file. It keeps the last messageLimit bytes of termination messages, and all other
// files.
func (d Dir) Release(ctx context.Context, uid types.UID) error {
	return d.unmountAndRemove(ctx, uid, func(pods *safepath.Dir) error {
		pod, err := pods.SubSameMount(string(uid))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer pod.Close()
		return errors.Join(pod.RemoveAll(ctx, subpath.DirName), pod.RemoveAll(ctx, volumesDir), pod.RemoveAll(ctx, csi.DevicesDir), freeFileSpace(pod))
	})
}

// unmountAndRemove unmounts all mounts of a pod and then calls remove. pods is the open Root.
// unmountAndRemove returns nil if Root does not exist.
func (d Dir) unmountAndRemove(ctx context.Context, uid types.UID, remove func(pods *safepath.Dir) error) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	pods, err := d.openRoot()
	if pods == nil {
		return err
	}
	defer pods.Close()
	began, unmounts := time.Now(), d.unmounts(uid)
	err = d.unmountAll(ctx, uid)
	if err == nil {
		err = remove(pods)
	}
	for _, o := range unmounts {
		d.reportOperation(o, began, err)
	}
	var mountErr *remainingMountsError
	switch {
	case err == nil, errors.As(err, &mountErr):
		return err
	case errors.Is(err, safepath.ErrMount): // a file system was mounted after podd had read the mount table
		var pathErr *fs.PathError
		errors.As(err, &pathErr)
		return &remainingMountsError{UID: uid, Mounts: []string{pathErr.Path}, description: "a mount"}
	}
	return fmt.Errorf("removing the directory of pod %s: %w", uid, err)
}

// unmountAll unmounts podd's mounts below a pod's directory, and then makes CSI drivers unpublish
// their volumes. This order is necessary because podd's subPath mounts may be bind mounts of CSI
// volumes. It returns an error if mounts remain. Otherwise it detaches the disks that no other pod
// uses.
func (d Dir) unmountAll(ctx context.Context, uid types.UID) error {
	if err := d.unmountOwn(ctx, uid); err != nil {
		return err
	}
	if err := d.unpublish(ctx, uid); err != nil {
		return err
	}
	remainingMounts, err := d.mountsBelow(string(uid))
	if err != nil {
		return err
	}
	if len(remainingMounts) > 0 {
		return newRemainingMountsError(uid, remainingMounts)
	}
	return d.disks().Release(ctx, uid)
}

// unmountOwn unmounts podd's mounts below a pod's directory. It unmounts a local volume only if the
// volume is not in use. A lazy unmount would detach a tmpfs that is in use, and the tmpfs would
// continue to use memory unnoticed.
func (d Dir) unmountOwn(ctx context.Context, uid types.UID) error {
	mounts, err := d.mountsBelow(string(uid))
	if err != nil || len(mounts) == 0 {
		return err
	}
	// coveredPath is the path of the last mount that was not unmounted. The mount covers the next
	// mounts with the same path, so that unmountOwn does not unmount them, either.
	coveredPath := ""
	for _, m := range mounts {
		if !isPoddMount(m) || m.Rel == coveredPath {
			coveredPath = m.Rel
			continue
		}
		unmount := d.unmountLocal
		if m.IsRemote() {
			unmount = d.unmountRemote
		}
		if err := unmount(ctx, m); err != nil {
			coveredPath = m.Rel
			if !isRetryable(err) {
				return fmt.Errorf("unmounting %s: %w", m.Path, err)
			}
		}
	}
	return nil
}

// isRetryable reports whether err means that the mount is in use, is covered by another mount, or
// no longer exists.
func isRetryable(err error) bool {
	return err == unix.EBUSY || err == unix.EINVAL || errors.Is(err, safepath.ErrMount) || errors.Is(err, fs.ErrNotExist)
}

// newRemainingMountsError returns the error for mounts that remain in a pod's directory.
func newRemainingMountsError(uid types.UID, remaining []mounts.Mount) error {
	order.Stable(remaining, func(a, b mounts.Mount) int {
		switch byPodd := isPoddMount(a); {
		case byPodd == isPoddMount(b):
			return 0
		case byPodd:
			return 1
		}
		return -1
	})
	e := &remainingMountsError{UID: uid, description: remaining[0].Description, Busy: isPoddMount(remaining[0])}
	for _, m := range remaining {
		e.Mounts = append(e.Mounts, m.Path)
	}
	return e
}

// unmountLocal unmounts a mount that does not depend on a server.
func (d Dir) unmountLocal(_ context.Context, m mounts.Mount) error {
	parent, err := d.openParent(m)
	if err != nil {
		return err
	}
	defer parent.Close()
	if strings.Contains(m.Rel, "/"+subpath.DirName+"/") {
		return subpath.Unbind(parent, filepath.Base(m.Rel))
	}
	return unix.Unmount(fmt.Sprintf("/proc/self/fd/%d/%s", parent.Fd(), filepath.Base(m.Rel)), unix.UMOUNT_NOFOLLOW)
}
