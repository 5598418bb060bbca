package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/runtime/beneath"
)

// claimPlugin has a link for each volume of a pod that is a claim's, which says
// whose: for as long as it is there the pod uses the claim.
const claimPlugin = "podd~claim"

// claimed is a persistentVolumeClaim: the volume that it is bound to, or a
// directory that podd keeps for it.
type claimed struct{}

func (claimed) source() string { return "persistentVolumeClaim" }

func (claimed) serves(v *v1.Volume) bool { return v.PersistentVolumeClaim != nil }

func (claimed) check(p *place, v *v1.Volume) (string, error) {
	c, err := p.claim(v)
	if err != nil {
		return "", err
	}
	if c.Owner != "" {
		if err := p.mayClaim(c, v.Name); err != nil {
			return "", err
		}
	}
	switch {
	case c.Volume == nil:
		return "", nil
	case c.Volume.Spec.NFS != nil:
		return exportOfVolume(c.Volume, false).check(p)
	case c.Volume.Spec.CSI != nil:
		return "", p.all.hasDrivers()
	}
	return bound(c.Volume, false)
}

// mayClaim refuses what prepare would: of what the pod does not have yet.
func (p *place) mayClaim(c *manifest.Claim, volume string) error {
	claims := Claims{p.claims}
	if err := claims.verify(c); err != nil {
		return err
	}
	have, err := os.Readlink(filepath.Join(p.path, volumesDir, claimPlugin, volume))
	if err == nil && have == filepath.Join(c.Namespace, c.Name) {
		return nil
	}
	return claims.alone(c, p.all.Root, p.ended)
}

func (claimed) prepare(ctx context.Context, p *place, v *v1.Volume) (string, error) {
	c, err := p.claim(v)
	if err != nil {
		return "", err
	}
	links, err := p.under(claimPlugin, dirMode)
	if err != nil {
		return "", err
	}
	defer links.Close()
	if c.Owner != "" { // what a cluster has bound it remembers, too
		if err := (Claims{p.claims}).take(ctx, c, p.all.Root, p.pod.Spec, links, v.Name); err != nil {
			return "", err
		}
	}
	readOnly := v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
	path := filepath.Join(p.claims, c.Namespace, c.Name)
	switch {
	case c.Volume == nil:
	case c.Volume.Spec.NFS != nil:
		path, err = exportOfVolume(c.Volume, readOnly).mount(ctx, p, v.Name)
	case c.Volume.Spec.CSI != nil:
		path, err = p.driven(ctx, v)
	default:
		path, err = bound(c.Volume, true)
	}
	if err != nil || !settles(c, readOnly) {
		return path, err
	}
	return path, own(ctx, p.pod.Spec, path, links, v.Name)
}

func (p *place) claim(v *v1.Volume) (*manifest.Claim, error) {
	if p.claims == "" || p.of == nil {
		return nil, errors.New("there are no claims here")
	}
	c := p.of.Claim(v)
	switch {
	case c == nil, c.Owner == "" && c.Volume == nil:
		return nil, fmt.Errorf("PersistentVolumeClaim %q %w", render.ClaimName(p.pod, v), render.ErrMissing)
	case c.Volume == nil && isBlock(c.Spec.VolumeMode):
		return nil, fmt.Errorf("PersistentVolumeClaim %q has the volumeMode Block, and no PersistentVolume that is a device", c.Name)
	}
	return c, nil
}

// bound is the path of a PersistentVolume of this machine.
func bound(pv *v1.PersistentVolume, create bool) (string, error) {
	s := &pv.Spec.PersistentVolumeSource
	switch {
	case s.HostPath != nil:
		return checkHostPath(s.HostPath, create)
	case s.Local != nil && isBlock(pv.Spec.VolumeMode):
		return device(pv)
	case s.Local != nil:
		path := filepath.Clean(s.Local.Path)
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("is %s, and podd mounts a directory only", nounOf(info.Mode()))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the directory of the PersistentVolume %q is not there; make or mount it", pv.Name)
		}
		return path, bareOf(err)
	}
	return "", fmt.Errorf("podd does not serve this kind of PersistentVolume, %q", pv.Name)
}

func bareOf(err error) error {
	if err == nil {
		return nil
	}
	return bare(err)
}

func isBlock(mode *v1.PersistentVolumeMode) bool {
	return mode != nil && *mode == v1.PersistentVolumeBlock
}

// settles says that the files of a claim are given to the pod's group, as those
// of a hostPath never are. Nor are those that a pod only reads, whoever else uses
// them.
func settles(c *manifest.Claim, readOnly bool) bool {
	return !readOnly && (c.Volume == nil || c.Volume.Spec.Local != nil) && !isBlock(c.Spec.VolumeMode)
}

// settled ends the name of what says that this was done for a pod.
const settled = ".settled"

// own gives the files of a volume to the pod's group, once in a pod's life. What
// a crash interrupted begins anew: the top comes last.
func own(ctx context.Context, pod *v1.Pod, path string, links *beneath.Dir, name string) error {
	s := pod.Spec.SecurityContext
	if s == nil || s.FSGroup == nil {
		return nil
	}
	if _, err := links.Readlink(name + settled); err == nil {
		return nil
	}
	vol, err := beneath.Open(path)
	if err != nil {
		return err
	}
	defer vol.Close()
	mismatch := s.FSGroupChangePolicy != nil && *s.FSGroupChangePolicy == v1.FSGroupChangeOnRootMismatch
	// As the kubelet, podd leaves a read-only file system as it is.
	if err := vol.Own(ctx, int(*s.FSGroup), mismatch); err != nil && !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("giving its files to group %d: %w", *s.FSGroup, err)
	}
	err = unix.Symlinkat(name, links.Fd(), name+settled)
	if err == unix.EEXIST {
		return nil
	}
	return err
}
