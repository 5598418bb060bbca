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
	"podd/reconcile/volume/csi"
	"podd/runtime/beneath"
)

// driven is a volume of a CSI driver that a pod writes itself.
type driven struct{}

func (driven) source() string { return "csi" }

func (driven) serves(v *v1.Volume) bool { return v.CSI != nil }

func (driven) check(p *place, _ *v1.Volume) (string, error) { return "", p.all.hasDrivers() }

func (driven) prepare(ctx context.Context, p *place, v *v1.Volume) (string, error) {
	return p.driven(ctx, v)
}

func (d Dir) hasDrivers() error {
	if d.CSI == nil {
		return errors.New("podd has CSI drivers serve volumes only as a node of a cluster; start it with --kubeconfig")
	}
	return nil
}

// driven has the driver of a volume publish it. A pod keeps what it has when nothing
// is known of a volume any more.
func (p *place) driven(ctx context.Context, v *v1.Volume) (string, error) {
	if err := p.all.hasDrivers(); err != nil {
		return "", err
	}
	known := p.of.CSI(v)
	if known == nil {
		if path := p.all.CSI.Has(p.pod.UID, v.Name); path != "" {
			return path, nil
		}
		return "", fmt.Errorf("what its driver is to be told %w", render.ErrMissing)
	}
	got, err := p.all.CSI.Publish(ctx, csi.Volume{CSI: known, Pod: p.pod, Name: v.Name})
	switch {
	case err != nil:
		return "", err
	case !got.Group:
		return got.Path, nil
	}
	return got.Path, p.ownDriven(ctx, got.Path, v.Name)
}

// ownTime is how long a volume of a server may take until its files are the pod's
// group's: it may have many.
const ownTime = time.Hour

// ownDriven gives the files of a volume to the pod's group. Where a server may keep
// whoever looks waiting, one waits and no other, and no longer than ownTime.
func (p *place) ownDriven(ctx context.Context, path, name string) error {
	remote, err := p.all.isRemoteAt(path)
	if err != nil {
		return err
	}
	give := func(ctx context.Context) error {
		links, err := p.all.links(p.pod.UID)
		if err != nil {
			return err
		}
		defer links.Close()
		return own(ctx, p.pod.Spec, path, links, name)
	}
	if !remote {
		return give(ctx)
	}
	err = p.all.Attempts.do(ctx, ownTime, "owning "+path, give)
	switch {
	case errors.Is(err, errSilent):
		return fmt.Errorf("its files were not given to the pod's group within %s; see to its server", ownTime)
	case errors.Is(err, errStill):
		return errors.New("still waiting for its server, to give its files to the pod's group; see to it")
	}
	return err
}

// links opens the directory of notes about a pod's volumes.
func (d Dir) links(uid types.UID) (*beneath.Dir, error) {
	pod, err := d.make(uid)
	if err != nil {
		return nil, err
	}
	defer pod.Close()
	return within(pod, true, volumesDir, claimPlugin)
}

// isRemoteAt asks the mount table whether a server is behind a mount.
func (d Dir) isRemoteAt(path string) (bool, error) {
	under, err := filepath.Rel(d.Root, path)
	if err != nil {
		return false, err
	}
	mounts, err := d.mountsBelow(under)
	for _, m := range mounts {
		if m.rel == under { // the first is on top
			return m.remote(), err
		}
	}
	return false, err
}

// unpublish has the drivers take a pod's volumes away.
func (d Dir) unpublish(ctx context.Context, uid types.UID) error {
	if d.CSI != nil {
		return d.CSI.Unpublish(ctx, uid)
	}
	has, err := csi.Left(filepath.Join(d.Root, string(uid)))
	if has && err == nil {
		err = fmt.Errorf("removing the directory of pod %s: CSI drivers have volumes in it; start podd with --kubeconfig, so that they take them away", uid)
	}
	return err
}
