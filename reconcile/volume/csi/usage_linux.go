package csi

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"podd/runtime/safepath"
)

// A usage contains the volumes that pods use or may use.
type usage struct {
	volumes map[Use]bool
	devices map[string]bool // by name of the PersistentVolume
	// staged contains the volumes that must have been staged. The value is the name of a
	// PersistentVolume of the volume.
	staged map[Use]string
	// unknown contains an error for each mount in a pod directory without a valid data file, by
	// the kubelet's name of the volume.
	unknown map[string]error
}

// used returns the volumes that pods use or may use, according to the pod directories on disk.
func (d *Drivers) used() (usage, error) {
	by := usage{map[Use]bool{}, map[string]bool{}, map[Use]string{}, map[string]error{}}
	pods, err := safepath.Names(d.pods())
	if err != nil {
		return usage{}, err
	}
	for _, pod := range pods {
		dir := filepath.Join(d.pods(), pod, "volumes", podPlugin)
		mounts, err := safepath.Names(dir)
		if err != nil {
			return usage{}, err
		}
		for _, name := range mounts {
			by.add(filepath.Join(dir, name))
		}
		links, err := safepath.Names(filepath.Join(d.pods(), pod, DevicesDir, podPlugin))
		if err != nil {
			return usage{}, err
		}
		for _, name := range links {
			by.devices[name] = true
		}
	}
	return by, nil
}

// add adds the volume of dir, the directory of a volume in a pod directory.
func (by usage) add(dir string) {
	f, err := load(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUnreadable) {
		if is, looked := isMounted(filepath.Join(dir, targetName)); !is && looked == nil {
			return
		}
	}
	name := filepath.Base(dir)
	if err != nil {
		at := filepath.Join(dir, targetName)
		by.unknown[name] = errors.Join(by.unknown[name], fmt.Errorf("the volume may be mounted at %s, which has no valid data file; unmount it: %w", at, err))
		return
	}
	u := Use{f[keyDriver], f[keyHandle]}
	by.volumes[u] = true
	if wasStaged(f) {
		by.staged[u] = name
	}
}

// wasStaged reports whether the volume of a published mount with the facts f must have been
// staged: it is a PersistentVolume, and the driver was called to publish it.
func wasStaged(f facts) bool { return f[keyLifecycle] != ephemeral && f[keyState] != announced }

// has reports whether a pod uses the staged volume s. It returns false and an error if podd cannot
// determine whether a pod uses s.
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
	for _, err := range by.unknown { // the volume may have been staged under any name
		all = append(all, err)
	}
	return false, errors.Join(all...)
}
