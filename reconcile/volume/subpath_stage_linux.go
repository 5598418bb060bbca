package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

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
// lead to then. Not to be called twice at a time for one container.
func (d Dir) BindSubPaths(pod *manifest.Pod, container string, volumes map[string]string, subs []render.SubPath) (map[int]string, error) {
	if len(subs) == 0 {
		return nil, nil
	}
	if err := checkUID(pod.UID); err != nil {
		return nil, err
	}
	dir, err := d.make(pod.UID)
	if err != nil {
		return nil, fmt.Errorf("preparing the directory of pod %s: %w", pod.Key, err)
	}
	defer dir.Close()
	paths := map[int]string{}
	for _, s := range subs {
		at := filepath.Join(subPathsDir, s.Volume, container)
		if err := d.bindSubPath(dir, at, volumes[s.Volume], s); err != nil {
			// The path is a variable's value, perhaps.
			return nil, fmt.Errorf("preparing subPath %q of volume %q for container %s of pod %s: %w", s.Text, s.Volume, container, pod.Key, bare(err))
		}
		paths[s.Mount] = filepath.Join(d.Root, string(pod.UID), at, strconv.Itoa(s.Mount))
	}
	return paths, nil
}

func (d Dir) bindSubPath(pod *beneath.Dir, at, host string, s render.SubPath) error {
	source, err := d.openInTime(host, s)
	if err != nil {
		return err
	}
	defer source.Close()
	for _, dir := range []string{subPathsDir, filepath.Dir(at), at} {
		if _, err := pod.Mkdir(dir, dirMode, -1); err != nil {
			return err
		}
	}
	stages, err := pod.SubSameMount(at)
	if err != nil {
		return err
	}
	defer stages.Close()
	return stage(stages, strconv.Itoa(s.Mount), source)
}

// openInTime gives up on a volume whose server is silent; what is opened after
// that is closed.
func (d Dir) openInTime(host string, s render.SubPath) (*os.File, error) {
	type result struct {
		file *os.File
		err  error
	}
	results := make(chan result)
	given := make(chan struct{})
	defer close(given)
	go func() {
		f, err := openSubPath(host, s)
		select {
		case results <- result{f, err}:
		case <-given:
			if err == nil {
				f.Close()
			}
		}
	}()
	select {
	case r := <-results:
		return r.file, r.err
	case <-time.After(d.NFS.patience()):
		return nil, fmt.Errorf("the volume did not answer within %s; see to its server", d.NFS.patience())
	}
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
