package csi

import (
	"errors"
	"io/fs"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime/beneath"
)

// Left says whether a driver has, or may have, a volume in a pod's directory.
func Left(pod string) (bool, error) {
	mounts := filepath.Join(pod, "volumes", PodPlugin)
	volumes, err := beneath.Names(mounts)
	if err != nil {
		return false, err
	}
	for _, name := range volumes {
		if _, err := load(filepath.Join(mounts, name)); !errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
	}
	devices, err := beneath.Names(filepath.Join(pod, DevicesDir, PodPlugin))
	return len(devices) > 0, err
}

// Has is where a pod has one of its volumes; "": nowhere.
func (d *Drivers) Has(pod types.UID, volume string) string {
	if !manifest.SafeUID(pod) {
		return ""
	}
	for _, p := range d.placesOf(pod) {
		if f, err := load(p.data); err == nil && f[p.name] == volume && d.stands(f[p.state], p.target) {
			return p.target
		}
	}
	return ""
}

// placesOf are those of the volumes that a pod has, or may have.
func (d *Drivers) placesOf(pod types.UID) []place {
	var all []place
	volumes, _ := beneath.Names(filepath.Join(d.pods(), string(pod), "volumes", PodPlugin))
	for _, name := range volumes {
		all = append(all, d.mount(Use{}, name, pod))
	}
	devices, _ := beneath.Names(filepath.Join(d.pods(), string(pod), DevicesDir, PodPlugin))
	for _, name := range devices {
		all = append(all, d.device(name, pod))
	}
	return all
}
