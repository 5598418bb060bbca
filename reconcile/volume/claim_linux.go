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

	"podd/manifest/refs"
	"podd/reconcile/render"
	"podd/reconcile/volume/claim"
	"podd/runtime/safepath"
)

// claimed is the volume of a persistentVolumeClaim: the PersistentVolume that the claim is
// bound to, or a directory of podd.
type claimed struct{}

func (claimed) source() string { return "persistentVolumeClaim" }

func (claimed) serves(v *v1.Volume) bool { return v.PersistentVolumeClaim != nil }

func (claimed) check(p *place, v *v1.Volume) (string, error) {
	c, err := p.claim(v)
	if err != nil {
		return "", err
	}
	if c.Owner != "" {
		if err := p.checkAvailable(c, v.Name); err != nil {
			return "", err
		}
	}
	switch {
	case c.Volume == nil:
		return "", nil
	case c.Volume.Spec.NFS != nil:
		return pvExport(c.Volume, false).check(p)
	case c.Volume.Spec.CSI != nil:
		return "", p.all.hasDrivers()
	}
	return localPath(c.Volume, false)
}

// checkAvailable returns the error of prepare if the pod may not use a claim that it does
// not use yet.
func (p *place) checkAvailable(c *refs.Claim, volume string) error {
	claims := claim.Store{Root: p.claims}
	if err := claims.Verify(c); err != nil {
		return err
	}
	have, err := os.Readlink(filepath.Join(p.path, claim.LinksDir, volume))
	if err == nil && have == filepath.Join(c.Namespace, c.Name) {
		return nil
	}
	return claims.CheckExclusive(c, p.all.Root, p.ended)
}

func (claimed) prepare(ctx context.Context, p *place, v *v1.Volume) (string, error) {
	c, err := p.claim(v)
	if err != nil {
		return "", err
	}
	links, err := p.openPlugin(claim.Plugin, dirMode)
	if err != nil {
		return "", err
	}
	defer links.Close()
	if c.Owner != "" { // the API server records the bindings of a cluster's claims
		u := claim.User{Links: links, Volume: v.Name, Pods: p.all.Root}
		u.Mode, u.GID = emptyDirMode(p.pod.Spec)
		if err := (claim.Store{Root: p.claims}).Acquire(ctx, c, u); err != nil {
			return "", err
		}
	}
	readOnly := v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
	path := filepath.Join(p.claims, c.Namespace, c.Name)
	switch {
	case c.Volume == nil:
	case c.Volume.Spec.NFS != nil:
		path, err = pvExport(c.Volume, readOnly).mount(ctx, p, v.Name)
	case c.Volume.Spec.CSI != nil:
		path, err = p.csiVolume(ctx, v)
	default:
		path, err = localPath(c.Volume, true)
	}
	if err == nil && isLocal(c) && !isBlock(c.Spec.VolumeMode) {
		err = recordPath(links, v.Name, path)
	}
	if err != nil || !needsGroup(c, readOnly) {
		return path, err
	}
	return path, p.setFSGroup(ctx, path, links, v.Name)
}

func (p *place) claim(v *v1.Volume) (*refs.Claim, error) {
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

// localPath returns the path of a local or hostPath PersistentVolume.
func localPath(pv *v1.PersistentVolume, create bool) (string, error) {
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
			err = fmt.Errorf("is %s, and podd mounts a directory only", describeMode(info.Mode()))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the directory of the PersistentVolume %q is not there; make or mount it", pv.Name)
		}
		return path, withoutPath(err)
	}
	return "", fmt.Errorf("podd does not support this kind of PersistentVolume, %q", pv.Name)
}

func isBlock(mode *v1.PersistentVolumeMode) bool {
	return mode != nil && *mode == v1.PersistentVolumeBlock
}

// needsGroup reports whether the group of a claim's files is set to the pod's fsGroup. It is
// not for a hostPath, for a block device, and for a claim that the pod uses read-only.
func needsGroup(c *refs.Claim, readOnly bool) bool {
	return !readOnly && (c.Volume == nil || isLocal(c)) && !isBlock(c.Spec.VolumeMode)
}

func isLocal(c *refs.Claim) bool { return c.Volume != nil && c.Volume.Spec.Local != nil }

// recordPath records that the volume of this name uses the local PersistentVolume at path.
func recordPath(links *safepath.Dir, name, path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return withoutPath(err)
	}
	return claim.RecordPath(links, name, real)
}

// ownedSuffix is the suffix of a link that records that setFSGroup was done for a volume.
const ownedSuffix = ".settled"

// setFSGroup sets the group of the files in a volume to the pod's fsGroup, once for each
// pod. After a crash it starts again, because the top directory is changed last. It does not
// change mounts below path and volumes there that other pods use, because these have owners
// and modes of their own. The kubelet skips only mounts.
func (p *place) setFSGroup(ctx context.Context, path string, links *safepath.Dir, name string) error {
	s := p.pod.Spec.Spec.SecurityContext
	if s == nil || s.FSGroup == nil {
		return nil
	}
	if _, err := links.Readlink(name + ownedSuffix); err == nil {
		return nil
	}
	vol, err := safepath.Open(path)
	if err != nil {
		return err
	}
	defer vol.Close()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return withoutPath(err)
	}
	nested, err := claim.NestedVolumes(real, p.all.Root, p.pod.UID)
	if err != nil {
		return err
	}
	mismatch := s.FSGroupChangePolicy != nil && *s.FSGroupChangePolicy == v1.FSGroupChangeOnRootMismatch
	// Like the kubelet, podd ignores a read-only file system.
	if err := vol.ChangeGroup(ctx, int(*s.FSGroup), mismatch, nested...); err != nil && !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("setting the group of its files to %d: %w", *s.FSGroup, err)
	}
	err = unix.Symlinkat(name, links.Fd(), name+ownedSuffix)
	if err == unix.EEXIST {
		return nil
	}
	return err
}
