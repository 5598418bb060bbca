package csi

import (
	"errors"
	"io/fs"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime/safepath"
)

// Left reports whether a pod's directory has, or may have, a volume of a driver.
func Left(pod string) (bool, error) {
	mounts := filepath.Join(pod, "volumes", podPlugin)
	volumes, err := safepath.Names(mounts)
	if err != nil {
		return false, err
	}
	for _, name := range volumes {
		if _, err := load(filepath.Join(mounts, name)); !errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
	}
	devices, err := safepath.Names(filepath.Join(pod, DevicesDir, podPlugin))
	return len(devices) > 0, err
}

// Has returns the path at which a volume of a pod is published; "" if it is not.
func (d *Drivers) Has(pod types.UID, volume string) string {
	if !manifest.SafeUID(pod) {
		return ""
	}
	for _, p := range d.podPlaces(pod) {
		if f, err := load(p.data); err == nil && f[p.name] == volume && d.isValid(f[p.state], p.target) {
			return p.target
		}
	}
	return ""
}

// podPlaces returns the places of the volumes that a pod has or may have.
func (d *Drivers) podPlaces(pod types.UID) []place {
	var all []place
	volumes, _ := safepath.Names(filepath.Join(d.pods(), string(pod), "volumes", podPlugin))
	for _, name := range volumes {
		all = append(all, d.mount(Use{}, name, pod))
	}
	devices, _ := safepath.Names(filepath.Join(d.pods(), string(pod), DevicesDir, podPlugin))
	for _, name := range devices {
		all = append(all, d.device(name, pod))
	}
	return all
}
