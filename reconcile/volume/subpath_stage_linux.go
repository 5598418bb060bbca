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
	"podd/runtime/beneath"
)

// subPathsDir is named, as what is below it, as the kubelet names it.
const subPathsDir = "volume-subpaths"

// BindSubPaths mounts the parts of volumes that a container mounts, each at a
// place of its own, and gives these by the number of the volumeMount. volumes has
// the host paths of the whole ones. They stay until Release or Remove; called
// again, for the next start of the container, it brings them to what the paths
// lead to then. A volume whose server is silent is given up, and while that
// attempt is out there is no other at its host path. Not to be called twice at a
// time for one container.
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
			// The path is a variable's value, perhaps.
			return nil, fmt.Errorf("preparing subPath %q of volume %q for container %s of pod %s: %w", s.Text, s.Volume, container, pod.Key, bare(err))
		}
		paths[s.Mount] = filepath.Join(d.Root, at)
	}
	return paths, nil
}

func (d Dir) bindSubPath(ctx context.Context, uid types.UID, at, host string, s render.SubPath) error {
	err := d.Attempts.do(ctx, d.NFS.patience(), "opening "+host, func(ctx context.Context) error {
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
		return fmt.Errorf("the volume did not answer within %s; see to its server", d.NFS.patience())
	case errors.Is(err, errStill):
		return fmt.Errorf("still waiting for the server of %s, which did not answer an earlier start; see to it", host)
	}
	return err
}

// stages makes the directory, below Root, in which the parts of a volume are
// mounted for a container.
func (d Dir) stages(uid types.UID, at string) (*beneath.Dir, error) {
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

// staged says whether what is wanted is mounted at a name already; all else that
// is there goes. What is mounted from a server is never looked at: it may have
// been mounted for an earlier container, from one that is silent now.
func (d Dir) staged(ctx context.Context, dir *beneath.Dir, at string, want fs.FileInfo) (bool, error) {
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
		return false, nil // what keeps it from being made says so then
	}
	have, err := there.Stat()
	there.Close()
	if err == nil && os.SameFile(want, have) {
		return true, nil
	}
	return false, clearStage(dir, name)
}

func clearStage(dir *beneath.Dir, name string) error {
	if err := detach(dir, name); err != nil {
		return err
	}
	return dir.RemoveAll(context.Background(), name)
}

// mostStacked bounds how many mounts are taken from one place.
const mostStacked = 64

// detach takes away all that is mounted at a name, with what is mounted below.
// That is all copies, and private first: unmounting one of them must not unmount
// the original. Lazily, since no container uses them.
func detach(dir *beneath.Dir, name string) error {
	for range mostStacked {
		f, err := dir.Follow(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		err = unix.Mount("", held(f), "", unix.MS_REC|unix.MS_PRIVATE, "")
		if err == nil {
			err = unix.Unmount(held(f), unix.MNT_DETACH)
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
