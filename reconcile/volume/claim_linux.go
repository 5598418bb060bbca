package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/manifest/refs"
	"podd/reconcile/render"
	"podd/reconcile/volume/claim"
	"podd/runtime/safepath"
)

// claimVolume implements volumeType for volumes of type persistentVolumeClaim. The volume is the
// PersistentVolume to which the claim is bound, or a directory in Dir.ClaimsDir.
type claimVolume struct{}

func (claimVolume) matches(v *v1.Volume) bool { return v.PersistentVolumeClaim != nil }

func (claimVolume) check(p *podDir, v *v1.Volume) (string, error) {
	c, err := p.resolveClaim(v)
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
		return newExportOfPV(c.Volume, false).check(p)
	case c.Volume.Spec.CSI != nil:
		return "", p.checkCSI(v)
	case isDisk(c.Volume):
		return p.checkDisk(v, newDiskSource(c.Volume, false))
	}
	return localPath(c.Volume, false)
}

// checkAvailable returns an error if the pod must not use a claim. This is the case if another
// binding is recorded for the claim, or if other pods use its PersistentVolume through another
// claim. If the pod already uses the claim, only the binding is checked. volume is the name of the
// volume in the pod.
func (p *podDir) checkAvailable(c *refs.Claim, volume string) error {
	claims := claim.Store{Root: p.root.ClaimsDir}
	if err := claims.Verify(c); err != nil {
		return err
	}
	usedClaim, err := os.Readlink(filepath.Join(p.path, claim.LinksDir, volume))
	if err == nil && usedClaim == filepath.Join(c.Namespace, c.Name) {
		return nil
	}
	return claims.CheckExclusive(c, p.root.Root, p.removedUIDs)
}

func (claimVolume) prepare(ctx context.Context, p *podDir, v *v1.Volume) (string, error) {
	c, err := p.resolveClaim(v)
	if err != nil {
		return "", err
	}
	links, err := p.openPluginDir(claim.PluginDir, dirMode)
	if err != nil {
		return "", err
	}
	defer links.Close()
	if c.Owner != "" { // if the claim belongs to a cluster, the cluster records the binding
		u := claim.Consumer{Links: links, Volume: v.Name, Pods: p.root.Root}
		u.Mode, u.GID = emptyDirMode(p.pod.Object)
		if err := (claim.Store{Root: p.root.ClaimsDir}).Acquire(ctx, c, u); err != nil {
			return "", err
		}
	}
	readOnly := v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
	path := filepath.Join(p.root.ClaimsDir, c.Namespace, c.Name)
	switch {
	case c.Volume == nil:
	case c.Volume.Spec.NFS != nil:
		path, err = newExportOfPV(c.Volume, readOnly).mount(ctx, p, v.Name)
	case c.Volume.Spec.CSI != nil:
		path, err = p.publishCSI(ctx, v)
	case isDisk(c.Volume):
		path, err = p.prepareDisk(ctx, v, newDiskSource(c.Volume, readOnly))
	default:
		path, err = localPath(c.Volume, true)
	}
	if err == nil && isLocal(c) && !isBlock(c.Spec.VolumeMode) {
		err = recordLocalPath(links, v.Name, path)
	}
	if err != nil || !needsGroup(c, readOnly) {
		return path, err
	}
	return path, p.setFSGroup(ctx, path, links, v.Name)
}

// resolveClaim returns the claim of a volume. It returns an error if the claim does not exist, or
// if it has volumeMode Block but is bound to no PersistentVolume.
func (p *podDir) resolveClaim(v *v1.Volume) (*refs.Claim, error) {
	if p.root.ClaimsDir == "" || p.content == nil {
		return nil, errors.New("PersistentVolumeClaims are not supported for this pod")
	}
	c := p.content.Claim(v)
	switch {
	case c == nil, c.Owner == "" && c.Volume == nil:
		return nil, fmt.Errorf("PersistentVolumeClaim %q %w", render.ClaimName(p.pod, v), render.ErrMissing)
	case c.Volume == nil && isBlock(c.Spec.VolumeMode):
		return nil, fmt.Errorf("PersistentVolumeClaim %q has volumeMode Block, but is not bound to a PersistentVolume; create a PersistentVolume for a block device", c.Name)
	}
	return c, nil
}

// localPath returns the path of a local or hostPath PersistentVolume. If create is true and the
// hostPath type allows it, localPath creates a missing hostPath.
func localPath(pv *v1.PersistentVolume, create bool) (string, error) {
	s := &pv.Spec.PersistentVolumeSource
	switch {
	case s.HostPath != nil:
		return prepareHostPath(s.HostPath, create)
	case s.Local != nil && isBlock(pv.Spec.VolumeMode):
		return devicePath(pv)
	case s.Local != nil:
		path := filepath.Clean(s.Local.Path)
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("is %s, but a local PersistentVolume with volumeMode Filesystem must be a directory; change the path of the PersistentVolume", describeMode(info.Mode()))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the directory of the PersistentVolume %q does not exist; create or mount it", pv.Name)
		}
		return path, withoutPath(err)
	}
	return "", fmt.Errorf("podd does not support the volume type %s of the PersistentVolume %q; use csi, nfs, iscsi, fc, local or hostPath", sourceName(s), pv.Name)
}

// sourceName returns the field name of a PersistentVolume's source, such as "iscsi".
func sourceName(s *v1.PersistentVolumeSource) string {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return "unknown"
}

func isBlock(mode *v1.PersistentVolumeMode) bool {
	return mode != nil && *mode == v1.PersistentVolumeBlock
}

// needsGroup reports whether podd must set the group of a claim's files to the pod's fsGroup. It
// returns false for a hostPath, for a block device and for a claim that the pod uses read-only.
func needsGroup(c *refs.Claim, readOnly bool) bool {
	return !readOnly && (c.Volume == nil || isLocal(c)) && !isBlock(c.Spec.VolumeMode)
}

func isLocal(c *refs.Claim) bool { return c.Volume != nil && c.Volume.Spec.Local != nil }

// recordLocalPath records that a volume of a pod uses the local PersistentVolume at path. links is
// the open claim.LinksDir of the pod, and name is the name of the volume.
func recordLocalPath(links *safepath.Dir, name, path string) error {
	realPath, err := filepath.EvalSymlinks(path)
	if err != nil {
		return withoutPath(err)
	}
	return claim.RecordPath(links, name, realPath)
}

// groupSetSuffix is the suffix of a link in claim.LinksDir. If the link of a volume exists,
// setFSGroup has completed for the volume.
const groupSetSuffix = ".settled"

// setFSGroup sets the group of the files in the volume at path to the pod's fsGroup, once for each
// pod. links is the open claim.LinksDir of the pod, and name is the name of the volume. setFSGroup
// changes the top directory last, so that after a crash it starts again. It does not change mounts
// below path, nor volumes below path that other pods use, because these mounts and volumes have
// their own owners and modes. The kubelet skips only mounts.
func (p *podDir) setFSGroup(ctx context.Context, path string, links *safepath.Dir, name string) error {
	s := p.pod.Object.Spec.SecurityContext
	if s == nil || s.FSGroup == nil {
		return nil
	}
	if _, err := links.Readlink(name + groupSetSuffix); err == nil {
		return nil
	}
	vol, err := safepath.Open(path)
	if err != nil {
		return err
	}
	defer vol.Close()
	realPath, err := filepath.EvalSymlinks(path)
	if err != nil {
		return withoutPath(err)
	}
	nestedVolumes, err := claim.NestedVolumes(realPath, p.root.Root, p.pod.UID)
	if err != nil {
		return err
	}
	mismatch := s.FSGroupChangePolicy != nil && *s.FSGroupChangePolicy == v1.FSGroupChangeOnRootMismatch
	began := time.Now()
	err = p.watchGroupChange(path, func(visited *atomic.Int64) error {
		return vol.ChangeGroup(ctx, int(*s.FSGroup), mismatch, visited, nestedVolumes...)
	})
	if i := slices.IndexFunc(p.pod.Object.Spec.Volumes, func(v v1.Volume) bool { return v.Name == name }); i >= 0 {
		plugin, _ := p.plugin(&p.pod.Object.Spec.Volumes[i])
		p.root.reportOperation(Operation{PodUID: p.pod.UID, Volume: name, Plugin: plugin, Name: operationSetGroup}, began, err)
	}
	// Like the kubelet, podd ignores a read-only file system.
	if err != nil && !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("setting the group of the files to %d: %w", *s.FSGroup, err)
	}
	err = unix.Symlinkat(name, links.Fd(), name+groupSetSuffix)
	if err == unix.EEXIST {
		return nil
	}
	return err
}
