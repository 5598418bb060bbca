package csi

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// announce records on disk that the pod uses the volume, so that Run does not unstage the volume.
func (w *work) announce() error {
	f, err := w.loadFacts(w.p.data)
	if err != nil {
		return err
	}
	if f[w.p.state] == "" {
		id := w.v.id()
		before := announced
		if f[keySpec] != "" && f[keyState] == "" {
			before = begun // a kubelet may have published the volume
		}
		f[keySpec], f[keyNode], f[keyAttachment] = w.v.spec(), w.d.o.Node, attachmentName(id, w.d.o.Node)
		f[w.p.name], f[w.p.state] = w.v.Name, before
		if w.v.Block {
			f[keyVolume], f[keyState] = w.v.Volume, cmp.Or(f[keyState], before)
		} else {
			f[keyLifecycle] = w.v.lifecycle()
		}
		if err := f.save(w.p.data); err != nil {
			return err
		}
	}
	if w.p.link == "" {
		return nil
	}
	return linkTo(w.p.target, w.p.link)
}

// linkTo creates the symbolic link link to target, and replaces a link to a different target. The
// link survives a power failure.
func linkTo(target, link string) error {
	if err := os.MkdirAll(filepath.Dir(link), 0o750); err != nil {
		return err
	}
	if have, err := os.Readlink(link); err == nil && have == target {
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

// attachmentName returns the name of the VolumeAttachment of a volume.
func attachmentName(u Use, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(u.Handle+u.Driver+node)))
}
