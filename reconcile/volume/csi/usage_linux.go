package csi

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/safepath"
)

// A usage contains the volumes that pods use or may use.
type usage struct {
	volumes map[VolumeID]bool
	devices map[string]bool // by the name of the PersistentVolume
	// staged contains the volumes that must have been staged.
	staged map[VolumeID]publishedUse
	// published contains the volumes in staged that may be published since the current boot of the host.
	published map[VolumeID]bool
	// unknown contains an error for each mount in a pod directory without a valid data file. The
	// key is the kubelet's name of the volume.
	unknown map[string]error
}

// A publishedUse describes a published volume that must have been staged: the name of the
// PersistentVolume, and the SELinux label of the mount.
type publishedUse struct{ name, label string }

// readUsage returns the volumes that pods use or may use, according to the pod directories on disk.
func (d *Drivers) readUsage() (usage, error) { return d.readUsageExcept("") }

// readUsageExcept is like readUsage, but ignores a pod.
func (d *Drivers) readUsageExcept(except types.UID) (usage, error) {
	u := usage{map[VolumeID]bool{}, map[string]bool{}, map[VolumeID]publishedUse{}, map[VolumeID]bool{}, map[string]error{}}
	pods, err := safepath.Names(d.podsDir())
	if err != nil {
		return usage{}, err
	}
	for _, pod := range pods {
		if pod == string(except) {
			continue
		}
		dir := filepath.Join(d.podsDir(), pod, "volumes", PodPluginDir)
		mounts, err := safepath.Names(dir)
		if err != nil {
			return usage{}, err
		}
		for _, name := range mounts {
			d.addUse(u, filepath.Join(dir, name))
		}
		links, err := safepath.Names(filepath.Join(d.podsDir(), pod, DevicesDir, PodPluginDir))
		if err != nil {
			return usage{}, err
		}
		for _, name := range links {
			u.devices[name] = true
		}
	}
	return u, nil
}

// addUse adds a volume of a pod to u. dir is the directory of the volume in the directory of the pod.
func (d *Drivers) addUse(u usage, dir string) {
	f, err := readFacts(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUnreadable) {
		if isMount, err := isMounted(filepath.Join(dir, targetName)); !isMount && err == nil {
			return
		}
	}
	name := filepath.Base(dir)
	if err != nil {
		target := filepath.Join(dir, targetName)
		u.unknown[name] = errors.Join(u.unknown[name], fmt.Errorf("the volume may be mounted at %s, which has no valid data file; unmount it: %w", target, err))
		return
	}
	id := VolumeID{f[keyDriver], f[keyHandle]}
	u.volumes[id] = true
	if wasStaged(f) {
		u.staged[id] = publishedUse{name, f[keySELinux]}
		u.published[id] = u.published[id] || d.mayBePublished(f[keyState], filepath.Join(dir, targetName))
	}
}

// mayBePublished reports whether a volume with this state may be published at target since the current
// boot of the host. If there is no state, a kubelet has published the volume, possibly during an earlier
// boot. Such a volume is published only if it is still mounted.
func (d *Drivers) mayBePublished(state, target string) bool {
	if state == "" {
		isMount, err := isMounted(target)
		return isMount || err != nil
	}
	return !d.isFromEarlierBoot(state)
}

// wasStaged reports whether a published volume with the facts f must have been staged. This is the
// case if the volume is a PersistentVolume and the driver was called to publish it.
func wasStaged(f facts) bool {
	return f[keyLifecycle] != lifecycleEphemeral && f[keyState] != stateAnnounced
}

// uses reports whether a pod uses the staged volume s. It returns false and an error if podd cannot
// determine whether a pod uses s.
func (u usage) uses(s stagedVolume) (bool, error) {
	if s.device != "" {
		return u.devices[s.device], nil
	}
	if u.volumes[s.VolumeID] {
		return true, nil
	}
	return false, u.unknownUse(s)
}

// unknownUse returns an error if s may be mounted in a pod directory without a valid data file.
func (u usage) unknownUse(s stagedVolume) error {
	if name, isUnshared := s.facts[keyPersistentVolume], s.facts[keyShared] == ""; name != "" && isUnshared {
		return u.unknown[name]
	}
	var errs []error
	for _, err := range u.unknown { // the unknown volume may be s, because s may have been staged under any name
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
