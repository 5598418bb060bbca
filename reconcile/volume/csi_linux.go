package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/intree"
	"podd/reconcile/render"
	"podd/reconcile/volume/claim"
	"podd/reconcile/volume/csi"
	"podd/reconcile/volume/selinux"
	"podd/runtime/safepath"
)

// csiVolume implements volumeType for inline CSI volumes (type csi), and for the inline volumes of
// in-tree types that CSI drivers provide.
type csiVolume struct{}

func (csiVolume) matches(v *v1.Volume) bool { return v.CSI != nil || intree.IsInline(v) }

func (csiVolume) check(p *podDir, v *v1.Volume) (string, error) { return "", p.checkCSI(v) }

func (csiVolume) prepare(ctx context.Context, p *podDir, v *v1.Volume) (string, error) {
	return p.publishCSI(ctx, v)
}

// checkCSI returns the error that publishCSI would return, as far as podd can determine the error without a
// call to the driver.
func (p *podDir) checkCSI(v *v1.Volume) error {
	if err := p.root.requireCSI(); err != nil {
		return err
	}
	if p.content == nil {
		return nil
	}
	parameters := p.content.CSI(v)
	if parameters == nil {
		return nil
	}
	_, err := p.decideLabel(p.csiLabelVolume(v, parameters))
	return err
}

// requireCSI returns an error if CSI volumes are not supported.
func (d Dir) requireCSI() error {
	if d.CSI == nil {
		return errors.New("podd run --runonce does not support CSI volumes, because CSI drivers register with a podd that keeps running; run podd without --runonce")
	}
	return nil
}

// publishCSI makes the driver publish a volume and returns the path of the volume. If an object
// with parameters for the driver is missing, but the volume is already published, publishCSI keeps
// the volume.
func (p *podDir) publishCSI(ctx context.Context, v *v1.Volume) (string, error) {
	if err := p.root.requireCSI(); err != nil {
		return "", err
	}
	parameters := p.content.CSI(v)
	if parameters == nil {
		if path := p.root.CSI.PublishedPath(p.pod.UID, v.Name); path != "" {
			return path, nil
		}
		return "", fmt.Errorf("an object of the CSI volume %w; check the PersistentVolume, the CSIDriver, the Secrets and, in a cluster, the VolumeAttachment", render.ErrMissing)
	}
	var published csi.PublishResult
	err := p.mountWithLabel(v, p.csiLabelVolume(v, parameters), func(label selinux.Mount) (err error) {
		published, err = p.root.CSI.Publish(ctx, csi.Volume{CSIVolume: parameters, Pod: p.pod, Name: v.Name, SELinux: label})
		return err
	})
	switch {
	case err != nil:
		return "", err
	case !published.MustSetGroup:
		return published.Path, nil
	}
	return published.Path, p.setCSIGroup(ctx, published.Path, v.Name)
}

// setGroupTimeout is the timeout for setting the group of the files in a network volume. It is
// long because the volume may contain many files.
const setGroupTimeout = time.Hour

// setCSIGroup sets the group of the files in the volume at path to the pod's fsGroup. name is the
// name of the volume. For a network volume, there is one attempt at a time, with the timeout
// setGroupTimeout.
func (p *podDir) setCSIGroup(ctx context.Context, path, name string) error {
	isRemote, err := p.root.isRemoteAt(path)
	if err != nil {
		return err
	}
	setGroup := func(ctx context.Context) error {
		links, err := p.root.openClaimLinks(p.pod.UID)
		if err != nil {
			return err
		}
		defer links.Close()
		return p.setFSGroup(ctx, path, links, name)
	}
	if !isRemote {
		return setGroup(ctx)
	}
	err = p.root.CallLimiter.do(ctx, setGroupTimeout, "owning "+path, setGroup)
	switch {
	case errors.Is(err, errTimeout):
		return fmt.Errorf("setting the group of the volume's files took longer than %s; check the server of the volume", setGroupTimeout)
	case errors.Is(err, errPending):
		return errors.New("an earlier attempt to set the group of the volume's files has not returned; check the server of the volume")
	}
	return err
}

// openClaimLinks opens the claim.LinksDir of a pod, and creates it if necessary. The caller must
// close the result.
func (d Dir) openClaimLinks(uid types.UID) (*safepath.Dir, error) {
	pod, err := d.openPodDir(uid)
	if err != nil {
		return nil, err
	}
	defer pod.Close()
	return openSubdir(pod, true, volumesDir, claim.PluginDir)
}

// isRemoteAt reports whether the mount at path may hang (see mounts.Mount.IsRemote), according to
// the mount table.
func (d Dir) isRemoteAt(path string) (bool, error) {
	under, err := filepath.Rel(d.Root, path)
	if err != nil {
		return false, err
	}
	mounts, err := d.mountsBelow(under)
	for _, m := range mounts {
		if m.Rel == under { // the first entry is the topmost mount
			return m.IsRemote(), err
		}
	}
	return false, err
}

// unpublish makes the CSI drivers unpublish a pod's volumes. Without CSI support, it returns an
// error if CSI volumes are published for the pod.
func (d Dir) unpublish(ctx context.Context, uid types.UID) error {
	if d.CSI != nil {
		return d.CSI.Unpublish(ctx, uid)
	}
	has, err := csi.HasVolumes(filepath.Join(d.Root, string(uid)))
	if has && err == nil {
		err = fmt.Errorf("removing the directory of pod %s: CSI volumes are published in it; start podd without --runonce to unpublish them", uid)
	}
	return err
}
