package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/reconcile/volume/subpath"
	"podd/runtime/safepath"
)

// BindSubPaths bind-mounts the subPaths of a container, and returns the host paths of the bind
// mounts by the index of the volumeMount. volumes contains the host paths of the volumes by name.
// The mounts exist until Release or Remove. BindSubPaths is called before every start of the
// container, and updates existing mounts. Calls for the same container must not overlap.
//
// If the server of a volume does not respond, BindSubPaths returns an error after a timeout. While
// that attempt hangs in the kernel, later attempts for the same host path fail at once.
func (d Dir) BindSubPaths(ctx context.Context, pod *manifest.Pod, container string, volumes map[string]string, subs []render.SubPath) (map[int]string, error) {
	if len(subs) == 0 {
		return nil, nil
	}
	if err := checkUID(pod.UID); err != nil {
		return nil, err
	}
	paths := map[int]string{}
	for _, s := range subs {
		rel := filepath.Join(string(pod.UID), subpath.DirName, s.Volume, container, strconv.Itoa(s.MountIndex))
		if err := d.bindSubPath(ctx, pod.UID, rel, volumes[s.Volume], s); err != nil {
			// The message contains s.ManifestText, not the path, because the path may contain
			// confidential values of variables.
			return nil, fmt.Errorf("preparing subPath %q of volume %q for container %s of pod %s: %w", s.ManifestText, s.Volume, container, pod.Key, withoutPath(err))
		}
		paths[s.MountIndex] = filepath.Join(d.Root, rel)
	}
	return paths, nil
}

// bindSubPath bind-mounts the subPath s of a volume. volumePath is the host path of the volume, and
// rel the path of the bind mount relative to Root.
func (d Dir) bindSubPath(ctx context.Context, uid types.UID, rel, volumePath string, s render.SubPath) error {
	err := d.CallLimiter.do(ctx, d.NFS.timeout(), "opening "+volumePath, func(ctx context.Context) error {
		source, err := subpath.Open(volumePath, s.Path, s.CreateMissing)
		if err != nil {
			return err
		}
		defer source.Close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		dir, err := d.makeSubPathDir(uid, filepath.Dir(rel))
		if err != nil {
			return err
		}
		defer dir.Close()
		if err := d.unmountRemoteAt(ctx, rel); err != nil {
			return err
		}
		return subpath.Bind(ctx, dir, filepath.Base(rel), source)
	})
	switch {
	case errors.Is(err, errTimeout):
		return fmt.Errorf("the server of the volume did not respond within %s; check the server", d.NFS.timeout())
	case errors.Is(err, errPending):
		return fmt.Errorf("the server of %s has not responded since an earlier attempt; check the server", volumePath)
	}
	return err
}

// makeSubPathDir creates and opens the directory rel, which contains the bind mounts of a volume
// for a container. rel is relative to Root. The caller must close the result.
func (d Dir) makeSubPathDir(uid types.UID, rel string) (*safepath.Dir, error) {
	pod, err := d.openPodDir(uid)
	if err != nil {
		return nil, err
	}
	defer pod.Close()
	inPod, err := filepath.Rel(string(uid), rel)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{subpath.DirName, filepath.Dir(inPod), inPod} {
		if _, err := pod.Mkdir(dir, dirMode, -1); err != nil {
			return nil, err
		}
	}
	return pod.SubSameMount(inPod)
}

// unmountRemoteAt unmounts the remote mounts at rel, a path relative to Root. It does not access
// them, because their servers may no longer respond.
func (d Dir) unmountRemoteAt(ctx context.Context, rel string) error {
	mountTable, err := d.mountsBelow(rel)
	if err != nil {
		return err
	}
	for _, m := range mountTable {
		if m.Rel != rel || !m.IsRemote() {
			continue
		}
		if err := d.unmountRemote(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
