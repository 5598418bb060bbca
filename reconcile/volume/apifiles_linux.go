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

// apiVolume implements volumeType for a type of volume with files that podd writes and updates.
type apiVolume struct {
	plugin   string // name of the directory, as in the kubelet
	inMemory bool   // whether the files must not be on disk, because they may contain secrets
	isType   func(*v1.Volume) bool
}

var (
	configMapType   = apiVolume{"kubernetes.io~configmap", false, func(v *v1.Volume) bool { return v.ConfigMap != nil }}
	secretType      = apiVolume{"kubernetes.io~secret", true, func(v *v1.Volume) bool { return v.Secret != nil }}
	downwardAPIType = apiVolume{"kubernetes.io~downward-api", true, func(v *v1.Volume) bool { return v.DownwardAPI != nil }}
	projectedType   = apiVolume{"kubernetes.io~projected", true, func(v *v1.Volume) bool { return v.Projected != nil }}
)

func (w apiVolume) matches(v *v1.Volume) bool { return w.isType(v) }

func (apiVolume) check(p *podDir, v *v1.Volume) (string, error) {
	_, err := p.renderFiles(v)
	return "", err
}

// prepare writes the files of the volume. If an object is missing, but podd has already written the
// files, prepare does not change them, because the pod can continue to use them.
func (w apiVolume) prepare(_ context.Context, p *podDir, v *v1.Volume) (string, error) {
	path := filepath.Join(p.path, volumesDir, w.plugin, v.Name)
	files, err := p.renderFiles(v)
	if err != nil && !errors.Is(err, render.ErrMissing) {
		return "", err
	}
	dir, openErr := p.openPluginDir(w.plugin, privateMode)
	if openErr != nil {
		return path, openErr
	}
	defer dir.Close()
	// Lock the directory, because several containers of the pod may start at the same time.
	if lockErr := flock(dir); lockErr != nil {
		return path, lockErr
	}
	if err != nil {
		if !isWritten(dir, v.Name) {
			return "", err
		}
		return path, nil
	}
	mode, gid := emptyDirMode(p.pod.Object)
	if w.inMemory {
		err = mountTmpfs(dir, v.Name, tmpfsOptions(mode, gid, memorySize(p.pod.Object, nil, p.root.MemoryVolumeLimit)))
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

// isWritten reports whether podd has already written the files of the volume with this name.
func isWritten(dir *safepath.Dir, name string) bool {
	vol, err := dir.Sub(name)
	if err != nil {
		return false
	}
	defer vol.Close()
	return (&fileTree{dir: vol}).currentDir() != ""
}

func (p *podDir) renderFiles(v *v1.Volume) (map[string]render.File, error) {
	if p.content == nil {
		return nil, errors.New("podd cannot determine the files of the volume, because it has not read the ConfigMaps, Secrets and other objects of the pod")
	}
	return p.content.Files(v)
}

// flock waits for an exclusive lock on dir. The lock is released when dir is closed.
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
