package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/render"
	"podd/reconcile/volume/claim"
	"podd/reconcile/volume/csi"
	"podd/runtime/safepath"
)

// csiVolume is an inline CSI volume of a pod.
type csiVolume struct{}

func (csiVolume) source() string { return "csi" }

func (csiVolume) serves(v *v1.Volume) bool { return v.CSI != nil }

func (csiVolume) check(p *place, _ *v1.Volume) (string, error) { return "", p.all.hasDrivers() }

func (csiVolume) prepare(ctx context.Context, p *place, v *v1.Volume) (string, error) {
	return p.csiVolume(ctx, v)
}

func (d Dir) hasDrivers() error {
	if d.CSI == nil {
		return errors.New("podd supports CSI volumes only as a node of a cluster; start it with --kubeconfig")
	}
	return nil
}

// csiVolume makes the driver publish a volume and returns its path. If the data for the
// driver is missing, a volume that was published before is kept.
func (p *place) csiVolume(ctx context.Context, v *v1.Volume) (string, error) {
	if err := p.all.hasDrivers(); err != nil {
		return "", err
	}
	known := p.of.CSI(v)
	if known == nil {
		if path := p.all.CSI.PublishedPath(p.pod.UID, v.Name); path != "" {
			return path, nil
		}
		return "", fmt.Errorf("the data for its driver %w", render.ErrMissing)
	}
	got, err := p.all.CSI.Publish(ctx, csi.Volume{CSI: known, Pod: p.pod, Name: v.Name})
	switch {
	case err != nil:
		return "", err
	case !got.Group:
		return got.Path, nil
	}
	return got.Path, p.setCSIGroup(ctx, got.Path, v.Name)
}

// setGroupTimeout is the timeout for setting the group of the files in a volume of a server,
// which may have many files.
const setGroupTimeout = time.Hour

// setCSIGroup sets the group of the files in a volume to the pod's fsGroup. For a volume of
// a server, there is one attempt at a time with the timeout setGroupTimeout.
func (p *place) setCSIGroup(ctx context.Context, path, name string) error {
	remote, err := p.all.isRemoteAt(path)
	if err != nil {
		return err
	}
	setGroup := func(ctx context.Context) error {
		links, err := p.all.openClaimLinks(p.pod.UID)
		if err != nil {
			return err
		}
		defer links.Close()
		return p.setFSGroup(ctx, path, links, name)
	}
	if !remote {
		return setGroup(ctx)
	}
	err = p.all.Attempts.do(ctx, setGroupTimeout, "owning "+path, setGroup)
	switch {
	case errors.Is(err, errSilent):
		return fmt.Errorf("setting the group of the volume's files took longer than %s; check the server of the volume", setGroupTimeout)
	case errors.Is(err, errPending):
		return errors.New("still waiting for its server to set the group of its files; check it")
	}
	return err
}

// openClaimLinks opens the directory of links for a pod's volumes (see claim.LinksDir).
func (d Dir) openClaimLinks(uid types.UID) (*safepath.Dir, error) {
	pod, err := d.make(uid)
	if err != nil {
		return nil, err
	}
	defer pod.Close()
	return within(pod, true, volumesDir, claim.Plugin)
}

// isRemoteAt reports whether a mount is from a server, according to the mount table.
func (d Dir) isRemoteAt(path string) (bool, error) {
	under, err := filepath.Rel(d.Root, path)
	if err != nil {
		return false, err
	}
	mounts, err := d.mountsBelow(under)
	for _, m := range mounts {
		if m.Rel == under { // the first is on top
			return m.IsRemote(), err
		}
	}
	return false, err
}

// unpublish makes the drivers unpublish a pod's volumes.
func (d Dir) unpublish(ctx context.Context, uid types.UID) error {
	if d.CSI != nil {
		return d.CSI.Unpublish(ctx, uid)
	}
	has, err := csi.HasVolumes(filepath.Join(d.Root, string(uid)))
	if has && err == nil {
		err = fmt.Errorf("removing the directory of pod %s: CSI volumes are published in it; start podd with --kubeconfig to unpublish them", uid)
	}
	return err
}
