package csi

import (
	"errors"
	"io/fs"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime/safepath"
)

// HasVolumes reports whether a CSI volume is, or may be, published in a pod directory. pod is the
// path of the directory. HasVolumes returns true for a volume with an unreadable data file.
func HasVolumes(pod string) (bool, error) {
	mounts := filepath.Join(pod, "volumes", PodPluginDir)
	volumes, err := safepath.Names(mounts)
	if err != nil {
		return false, err
	}
	for _, name := range volumes {
		if _, err := readFacts(filepath.Join(mounts, name)); !errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
	}
	devices, err := safepath.Names(filepath.Join(pod, DevicesDir, PodPluginDir))
	return len(devices) > 0, err
}

// PublishedPath returns the path at which a volume is published for a pod, or "" if the volume is
// not published. volume is the name of the volume in the pod.
func (d *Drivers) PublishedPath(pod types.UID, volume string) string {
	if !manifest.IsSafeUID(pod) {
		return ""
	}
	for _, p := range d.podVolumePaths(pod) {
		if f, err := readFacts(p.dataDir); err == nil && f[p.nameKey] == volume && d.isStateCurrent(f[p.stateKey], p.target) {
			return p.target
		}
	}
	return ""
}

// A PodVolume is a CSI volume that is, or may be, published for a pod.
type PodVolume struct {
	Name   string // name of the volume in the pod
	Driver string
	Block  bool // whether the volume is a block device
}

// PodVolumes returns the CSI volumes of a pod, except those with an unreadable data file.
func (d *Drivers) PodVolumes(pod types.UID) []PodVolume {
	var volumes []PodVolume
	for _, p := range d.podVolumePaths(pod) {
		if f, err := readFacts(p.dataDir); err == nil {
			volumes = append(volumes, PodVolume{Name: f[p.nameKey], Driver: f[keyDriver], Block: p.link != ""})
		}
	}
	return volumes
}

// podVolumePaths returns the paths of all CSI volumes that are, or may be, published for a pod.
func (d *Drivers) podVolumePaths(pod types.UID) []volumePaths {
	var paths []volumePaths
	volumes, _ := safepath.Names(filepath.Join(d.podsDir(), string(pod), "volumes", PodPluginDir))
	for _, name := range volumes {
		paths = append(paths, d.mountPaths(VolumeID{}, name, pod))
	}
	devices, _ := safepath.Names(filepath.Join(d.podsDir(), string(pod), DevicesDir, PodPluginDir))
	for _, name := range devices {
		paths = append(paths, d.devicePaths(name, pod))
	}
	return paths
}
