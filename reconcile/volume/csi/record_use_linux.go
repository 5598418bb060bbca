package csi

import (
	"cmp"
	"os"
	"path/filepath"

	"podd/manifest/refs"
)

// recordUse records on disk that the pod uses the volume, so that Run does not unstage the volume.
func (op *operation) recordUse() error {
	f, err := op.loadFacts(op.p.dataDir)
	if err != nil {
		return err
	}
	if f[op.p.stateKey] == "" {
		// A data file without a state was written by a kubelet, which may have published the volume.
		isFromKubelet := f[keySpec] != "" && f[keyState] == ""
		id := op.v.id()
		f[keySpec], f[keyNode], f[keyAttachment] = op.v.specName(), op.d.o.NodeName, refs.AttachmentName(id.Driver, id.Handle, op.d.o.NodeName)
		f[op.p.nameKey] = op.v.Name
		switch {
		case !op.v.Block:
			f[keyLifecycle] = op.v.lifecycle()
			if !isFromKubelet { // otherwise there must be no state; see mayBePublished
				f[keyState] = stateAnnounced
			}
		case isFromKubelet:
			f[keyPersistentVolume], f[keyState], f[op.p.stateKey] = op.v.Volume, op.d.begunState(), op.d.begunState()
		default:
			f[keyPersistentVolume], f[keyState], f[op.p.stateKey] = op.v.Volume, cmp.Or(f[keyState], stateAnnounced), stateAnnounced
		}
		if err := f.save(op.p.dataDir); err != nil {
			return err
		}
	}
	if op.p.link == "" {
		return nil
	}
	return linkTo(op.p.target, op.p.link)
}

// linkTo creates a symbolic link at the path link, which points to the path target. It replaces an
// existing link with a different target. After linkTo returns, the link survives a power failure.
func linkTo(target, link string) error {
	if err := os.MkdirAll(filepath.Dir(link), 0o750); err != nil {
		return err
	}
	if oldTarget, err := os.Readlink(link); err == nil && oldTarget == target {
		return nil
	}
	if err := remove(link); err != nil {
		return err
	}
	if err := os.Symlink(target, link); err != nil {
		return err
	}
	return syncDir(filepath.Dir(link))
}
