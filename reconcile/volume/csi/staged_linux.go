package csi

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"podd/runtime/safepath"
)

// A stagedVolume is a volume that is staged or may be staged.
type stagedVolume struct {
	VolumeID
	facts       facts
	dir         string // directory of the data file
	stagingPath string
	device      string // name of the PersistentVolume if it is a block device, otherwise ""
}

// isAnnounced reports whether podd has announced on disk that it will stage the volume, but has not
// called the driver yet.
func (s stagedVolume) isAnnounced() bool { return s.facts[keyState] == stateAnnounced }

// readStaged returns the staged volumes according to the data files on disk, and block devices that
// are announced but not staged. It logs and ignores unreadable files.
func (d *Drivers) readStaged() ([]stagedVolume, error) {
	var volumes []stagedVolume
	add := func(dir, staging, device string) error {
		f, err := readFacts(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, errUnreadable):
			if d.markUnreadable(dir) {
				d.o.Log.Error("volume ignored because its data file is unreadable", "err", err)
			}
			return nil
		case err != nil:
			return err
		}
		volumes = append(volumes, stagedVolume{VolumeID{f[keyDriver], f[keyHandle]}, f, dir, staging, device})
		return nil
	}
	drivers, err := safepath.Names(d.pluginsDir())
	if err != nil {
		return nil, err
	}
	for _, driver := range drivers {
		if driver == DevicesDir {
			continue
		}
		hashes, err := safepath.Names(filepath.Join(d.pluginsDir(), driver))
		if err != nil {
			return nil, err
		}
		for _, hash := range hashes {
			dir := filepath.Join(d.pluginsDir(), driver, hash)
			if err := add(dir, filepath.Join(dir, globalDir), ""); err != nil {
				return nil, err
			}
		}
	}
	devices, err := safepath.Names(d.devicesDir())
	if err != nil {
		return nil, err
	}
	for _, volume := range devices {
		p := d.devicePaths(volume, "")
		if err := add(p.stageDataDir, p.stagingPath, volume); err != nil {
			return nil, err
		}
	}
	return volumes, nil
}

// markUnreadable records that the facts in a directory are unreadable, and reports whether
// this is the first call for the directory.
func (d *Drivers) markUnreadable(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unreadable[dir] {
		return false
	}
	d.unreadable[dir] = true
	return true
}

// isStagedElsewhere reports whether a volume is also staged in a directory other than dir. This is
// possible if several PersistentVolumes refer to the volume.
func (d *Drivers) isStagedElsewhere(id VolumeID, dir string) (bool, error) {
	volumes, err := d.readStaged()
	return slices.ContainsFunc(volumes, func(s stagedVolume) bool { return s.VolumeID == id && s.dir != dir && !s.isAnnounced() }), err
}

// restoreStaged restores the data file of a volume that may be staged, if the file was lost or does
// not identify the volume. The restored file records that the volume may be staged. use describes the
// published volume.
func (d *Drivers) restoreStaged(id VolumeID, use publishedUse) error {
	dir := d.mountPaths(id, "", "").stageDataDir
	f, err := readFacts(dir)
	switch {
	case err == nil && f[keyDriver] == id.Driver && f[keyHandle] == id.Handle:
		return nil
	case err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUnreadable):
		f = facts{keyDriver: id.Driver, keyHandle: id.Handle, keyPersistentVolume: use.name, keyShared: "true", keyState: d.begunState()}
		f.setLabel(use.label)
		err = f.save(dir)
	}
	if err != nil {
		return fmt.Errorf("recording in %s that volume %q of driver %s is staged: %w", dir, id.Handle, id.Driver, err)
	}
	return nil
}
