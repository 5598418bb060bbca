package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/reconcile/render"
	"podd/runtime/safepath"
)

// podFiles is a volume of files that podd writes and updates.
type podFiles struct {
	plugin string // kubelet's name of the directory
	field  string
	memory bool // whether the files may be secret and must not be on disk
	is     func(*v1.Volume) bool
}

var (
	configMap   = podFiles{"kubernetes.io~configmap", "configMap", false, func(v *v1.Volume) bool { return v.ConfigMap != nil }}
	secret      = podFiles{"kubernetes.io~secret", "secret", true, func(v *v1.Volume) bool { return v.Secret != nil }}
	downwardAPI = podFiles{"kubernetes.io~downward-api", "downwardAPI", true, func(v *v1.Volume) bool { return v.DownwardAPI != nil }}
	projected   = podFiles{"kubernetes.io~projected", "projected", true, func(v *v1.Volume) bool { return v.Projected != nil }}
)

func (w podFiles) source() string           { return w.field }
func (w podFiles) serves(v *v1.Volume) bool { return w.is(v) }

func (podFiles) check(p *place, v *v1.Volume) (string, error) {
	_, err := p.filesOf(v)
	return "", err
}

// prepare writes the files of the volume. If an object is missing, a volume that was
// written before is not changed.
func (w podFiles) prepare(_ context.Context, p *place, v *v1.Volume) (string, error) {
	path := filepath.Join(p.path, volumesDir, w.plugin, v.Name)
	files, err := p.filesOf(v)
	if err != nil && !errors.Is(err, render.ErrMissing) {
		return "", err
	}
	dir, open := p.openPlugin(w.plugin, privateMode)
	if open != nil {
		return path, open
	}
	defer dir.Close()
	// Containers that start concurrently prepare their pod concurrently.
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
		err = mountTmpfs(dir, v.Name, tmpfsOptions(mode, gid, memorySize(p.pod.Spec, nil, p.node)))
	} else {
		err = makeDirVolume(dir, v.Name, mode, gid)
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

// isWritten reports whether a volume was written before.
func isWritten(dir *safepath.Dir, name string) bool {
	vol, err := dir.Sub(name)
	if err != nil {
		return false
	}
	defer vol.Close()
	return (&fileTree{dir: vol}).current() != ""
}

func (p *place) filesOf(v *v1.Volume) (map[string]render.File, error) {
	if p.of == nil {
		return nil, errors.New("its content is unknown")
	}
	return p.of.Files(v)
}

// flock locks dir until it is closed.
func flock(dir *safepath.Dir) error {
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
