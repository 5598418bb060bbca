package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/reconcile/render"
	"podd/runtime/beneath"
)

// written is a volume whose files podd writes and keeps up to date.
type written struct {
	plugin string // the kubelet's name of the directory
	field  string
	memory bool // what may be secret never reaches a disk
	is     func(*v1.Volume) bool
}

var (
	configMap   = written{"kubernetes.io~configmap", "configMap", false, func(v *v1.Volume) bool { return v.ConfigMap != nil }}
	secret      = written{"kubernetes.io~secret", "secret", true, func(v *v1.Volume) bool { return v.Secret != nil }}
	downwardAPI = written{"kubernetes.io~downward-api", "downwardAPI", true, func(v *v1.Volume) bool { return v.DownwardAPI != nil }}
	projected   = written{"kubernetes.io~projected", "projected", true, func(v *v1.Volume) bool { return v.Projected != nil }}
)

func (w written) source() string           { return w.field }
func (w written) serves(v *v1.Volume) bool { return w.is(v) }

func (written) check(p *place, v *v1.Volume) (string, error) {
	_, err := p.filesOf(v)
	return "", err
}

// prepare brings the volume to its content. One that was written stays as it is
// while an object of it is missing.
func (w written) prepare(_ context.Context, p *place, v *v1.Volume) (string, error) {
	path := filepath.Join(p.path, volumesDir, w.plugin, v.Name)
	files, err := p.filesOf(v)
	if err != nil && !errors.Is(err, render.ErrMissing) {
		return "", err
	}
	dir, open := p.under(w.plugin, privateMode)
	if open != nil {
		return path, open
	}
	defer dir.Close()
	// Containers that start side by side prepare their pod side by side.
	if fault := flock(dir); fault != nil {
		return path, fault
	}
	if err != nil {
		if !isWritten(dir, v.Name) {
			return "", err
		}
		return path, nil
	}
	mode, gid := emptyDirMode(p.pod.Spec)
	if w.memory {
		err = inMemory(dir, v.Name, tmpfsOptions(mode, gid, memorySize(p.pod.Spec, nil, p.node)))
	} else {
		err = onDisk(dir, v.Name, mode, gid)
	}
	if err != nil {
		return path, err
	}
	vol, err := dir.Sub(v.Name)
	if err != nil {
		return path, err
	}
	defer vol.Close()
	return path, (&fileTree{vol, gid}).write(files)
}

// isWritten says that a volume was written already.
func isWritten(dir *beneath.Dir, name string) bool {
	vol, err := dir.Sub(name)
	if err != nil {
		return false
	}
	defer vol.Close()
	return (&fileTree{dir: vol}).current() != ""
}

func (p *place) filesOf(v *v1.Volume) (map[string]render.File, error) {
	if p.of == nil {
		return nil, errors.New("nothing is known of what is in it")
	}
	return p.of.Files(v)
}

// flock waits for whoever else prepares volumes there; closing dir ends it.
func flock(dir *beneath.Dir) error {
	for {
		switch err := unix.Flock(dir.Fd(), unix.LOCK_EX); err {
		case nil:
			return nil
		case unix.EINTR:
		default:
			return fmt.Errorf("locking %s: %w", dir.Path(), err)
		}
	}
}
