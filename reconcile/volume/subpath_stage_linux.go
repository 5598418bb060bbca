package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/runtime/safepath"
)

// subPathsDir and the names below it are those of the kubelet.
const subPathsDir = "volume-subpaths"

// BindSubPaths bind-mounts the subPaths of a container, and returns the host paths of the
// bind mounts by the index of the volumeMount. volumes has the host paths of the volumes.
// The mounts exist until Release or Remove. If BindSubPaths is called again for the next
// start of the container, it updates them. If the server of a volume does not respond, it
// returns an error after a timeout; until that attempt returns, there is no other for the
// same host path. Calls for the same container must not overlap.
func (d Dir) BindSubPaths(ctx context.Context, pod *manifest.Pod, container string, volumes map[string]string, subs []render.SubPath) (map[int]string, error) {
	if len(subs) == 0 {
		return nil, nil
	}
	if err := checkUID(pod.UID); err != nil {
		return nil, err
	}
	paths := map[int]string{}
	for _, s := range subs {
		at := filepath.Join(string(pod.UID), subPathsDir, s.Volume, container, strconv.Itoa(s.Mount))
		if err := d.bindSubPath(ctx, pod.UID, at, volumes[s.Volume], s); err != nil {
			// The message omits the path because it may be the value of a variable.
			return nil, fmt.Errorf("preparing subPath %q of volume %q for container %s of pod %s: %w", s.Text, s.Volume, container, pod.Key, withoutPath(err))
		}
		paths[s.Mount] = filepath.Join(d.Root, at)
	}
	return paths, nil
}

func (d Dir) bindSubPath(ctx context.Context, uid types.UID, at, host string, s render.SubPath) error {
	err := d.Attempts.do(ctx, d.NFS.timeout(), "opening "+host, func(ctx context.Context) error {
		source, err := openSubPath(host, s)
		if err != nil {
			return err
		}
		defer source.Close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		stages, err := d.stages(uid, filepath.Dir(at))
		if err != nil {
			return err
		}
		defer stages.Close()
		return d.stage(ctx, stages, at, source)
	})
	switch {
	case errors.Is(err, errSilent):
		return fmt.Errorf("the volume did not answer within %s; check its server", d.NFS.timeout())
	case errors.Is(err, errPending):
		return fmt.Errorf("still waiting for the server of %s, which did not answer an earlier start; check it", host)
	}
	return err
}

// stages creates and opens the directory, at below Root, of the subPath mounts of a volume
// for a container.
func (d Dir) stages(uid types.UID, at string) (*safepath.Dir, error) {
	pod, err := d.make(uid)
	if err != nil {
		return nil, err
	}
	defer pod.Close()
	in, err := filepath.Rel(string(uid), at)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{subPathsDir, filepath.Dir(in), in} {
		if _, err := pod.Mkdir(dir, dirMode, -1); err != nil {
			return nil, err
		}
	}
	return pod.SubSameMount(in)
}

// staged reports whether want is mounted at a path; it removes other mounts there. A mount
// from a server is always removed without access to it, because the server may no longer
// respond.
func (d Dir) staged(ctx context.Context, dir *safepath.Dir, at string, want fs.FileInfo) (bool, error) {
	mounts, err := d.mountsBelow(at)
	if err != nil {
		return false, err
	}
	name, remote := filepath.Base(at), false
	for _, m := range mounts {
		if m.rel == at && m.remote() {
			remote = true
			if err := d.unmountRemote(ctx, m); err != nil {
				return false, err
			}
		}
	}
	if remote {
		return false, clearStage(dir, name)
	}
	there, err := dir.Follow(name)
	if err != nil {
		return false, nil // creating it reports the error
	}
	have, err := there.Stat()
	there.Close()
	if err == nil && os.SameFile(want, have) {
		return true, nil
	}
	return false, clearStage(dir, name)
}

func clearStage(dir *safepath.Dir, name string) error {
	if err := detach(dir, name); err != nil {
		return err
	}
	return dir.RemoveAll(context.Background(), name)
}

// maxStackedMounts is the maximum number of mounts that detach unmounts at a path.
const maxStackedMounts = 64

// detach unmounts all mounts at a name and below it. They are bind mounts, which are made
// private first, so that the originals are not unmounted. The unmount is lazy because no
// container uses them.
func detach(dir *safepath.Dir, name string) error {
	for range maxStackedMounts {
		f, err := dir.Follow(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		err = unix.Mount("", fdPath(f), "", unix.MS_REC|unix.MS_PRIVATE, "")
		if err == nil {
			err = unix.Unmount(fdPath(f), unix.MNT_DETACH)
		}
		f.Close()
		if err == unix.EINVAL { // nothing is mounted there
			return nil
		}
		if err != nil {
			return err
		}
	}
	return unix.EBUSY
}
