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

// BindSubPaths bind-mounts the subPaths of a container, and returns the host paths of the
// bind mounts by the index of the volumeMount. volumes contains the host paths of the
// volumes by name. The mounts exist until Release or Remove. If BindSubPaths is called again
// for the next start of the container, it updates the mounts. If the server of a volume does
// not respond, BindSubPaths returns an error after a timeout; until that attempt returns,
// there is no other attempt for the same host path. Calls for the same container must not
// overlap.
func (d Dir) BindSubPaths(ctx context.Context, pod *manifest.Pod, container string, volumes map[string]string, subs []render.SubPath) (map[int]string, error) {
	if len(subs) == 0 {
		return nil, nil
	}
	if err := checkUID(pod.UID); err != nil {
		return nil, err
	}
	paths := map[int]string{}
	for _, s := range subs {
		at := filepath.Join(string(pod.UID), subpath.Dir, s.Volume, container, strconv.Itoa(s.Mount))
		if err := d.bindSubPath(ctx, pod.UID, at, volumes[s.Volume], s); err != nil {
			// The message omits the path because it may be the value of a variable.
			return nil, fmt.Errorf("preparing subPath %q of volume %q for container %s of pod %s: %w", s.Text, s.Volume, container, pod.Key, withoutPath(err))
		}
		paths[s.Mount] = filepath.Join(d.Root, at)
	}
	return paths, nil
}

// bindSubPath mounts s of the volume at a host path at a path below Root.
func (d Dir) bindSubPath(ctx context.Context, uid types.UID, at, host string, s render.SubPath) error {
	err := d.Attempts.do(ctx, d.NFS.timeout(), "opening "+host, func(ctx context.Context) error {
		source, err := subpath.Open(host, s.Path, s.Make)
		if err != nil {
			return err
		}
		defer source.Close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		dir, err := d.makeSubPathDir(uid, filepath.Dir(at))
		if err != nil {
			return err
		}
		defer dir.Close()
		if err := d.unmountRemoteAt(ctx, at); err != nil {
			return err
		}
		return subpath.Bind(ctx, dir, filepath.Base(at), source)
	})
	switch {
	case errors.Is(err, errSilent):
		return fmt.Errorf("the volume did not answer within %s; check its server", d.NFS.timeout())
	case errors.Is(err, errPending):
		return fmt.Errorf("still waiting for the server of %s, which did not answer an earlier start; check it", host)
	}
	return err
}

// makeSubPathDir creates and opens the directory, at below Root, of the bind mounts of a
// volume for a container.
func (d Dir) makeSubPathDir(uid types.UID, at string) (*safepath.Dir, error) {
	pod, err := d.make(uid)
	if err != nil {
		return nil, err
	}
	defer pod.Close()
	in, err := filepath.Rel(string(uid), at)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{subpath.Dir, filepath.Dir(in), in} {
		if _, err := pod.Mkdir(dir, dirMode, -1); err != nil {
			return nil, err
		}
	}
	return pod.SubSameMount(in)
}

// unmountRemoteAt unmounts the mounts of servers at a path below Root without access to
// them, because a server may no longer respond.
func (d Dir) unmountRemoteAt(ctx context.Context, at string) error {
	found, err := d.mountsBelow(at)
	if err != nil {
		return err
	}
	for _, m := range found {
		if m.Rel != at || !m.IsRemote() {
			continue
		}
		if err := d.unmountRemote(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
