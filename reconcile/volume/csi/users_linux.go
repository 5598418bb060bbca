package csi

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"podd/runtime/beneath"
)

// usage is what pods use, or may use, of drivers' volumes.
type usage struct {
	volumes map[Use]bool
	devices map[string]bool // by name
	// staged are, of the volumes, those that had to be staged before, with the name of
	// a PersistentVolume.
	staged map[Use]string
	// unknown are mounts in pods of which nothing says whose they are, by the kubelet's
	// name of the volume.
	unknown map[string]error
}

// used looks at what is on disk of pods.
func (d *Drivers) used() (usage, error) {
	by := usage{map[Use]bool{}, map[string]bool{}, map[Use]string{}, map[string]error{}}
	pods, err := beneath.Names(d.pods())
	if err != nil {
		return usage{}, err
	}
	for _, pod := range pods {
		dir := filepath.Join(d.pods(), pod, "volumes", PodPlugin)
		mounts, err := beneath.Names(dir)
		if err != nil {
			return usage{}, err
		}
		for _, name := range mounts {
			by.add(filepath.Join(dir, name))
		}
		links, err := beneath.Names(filepath.Join(d.pods(), pod, DevicesDir, PodPlugin))
		if err != nil {
			return usage{}, err
		}
		for _, name := range links {
			by.devices[name] = true
		}
	}
	return by, nil
}

// add takes what is in a pod's directory of a volume.
func (by usage) add(dir string) {
	f, err := load(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUnreadable) {
		if is, looked := isMounted(filepath.Join(dir, Target)); !is && looked == nil {
			return
		}
	}
	name := filepath.Base(dir)
	if err != nil {
		at := filepath.Join(dir, Target)
		by.unknown[name] = errors.Join(by.unknown[name], fmt.Errorf("it may be what is mounted at %s, of which nothing says whose it is; umount that: %w", at, err))
		return
	}
	u := Use{f[keyDriver], f[keyHandle]}
	by.volumes[u] = true
	if wasStaged(f) {
		by.staged[u] = name
	}
}

// wasStaged says of facts about a mount in a pod that its volume had to be staged.
func wasStaged(f facts) bool { return f[keyLifecycle] != ephemeral && f[keyState] != announced }

// has says that a pod uses a volume that is staged; the error is that of not knowing.
func (by usage) has(s stagedVolume) (bool, error) {
	if s.device != "" {
		return by.devices[s.device], nil
	}
	if by.volumes[s.Use] {
		return true, nil
	}
	if name, one := s.facts[keyVolume], s.facts[keyShared] == ""; name != "" && one {
		return false, by.unknown[name]
	}
	var all []error
	for _, err := range by.unknown { // it may be staged for any name
		all = append(all, err)
	}
	return false, errors.Join(all...)
}
