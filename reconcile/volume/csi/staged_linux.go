package csi

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"podd/runtime/safepath"
)

// A stagedVolume is a volume that is or may be staged.
type stagedVolume struct {
	VolumeID
	facts   facts
	dir     string // directory of its data file
	staging string
	device  string // name of the PersistentVolume if it is a block device, otherwise ""
}

// announced reports whether podd has not called the driver to stage the volume.
func (s stagedVolume) announced() bool { return s.facts[keyState] == announced }

// readStaged returns the staged volumes according to the data files on disk, and block devices that
// are announced but not staged. It logs and ignores unreadable files.
func (d *Drivers) readStaged() ([]stagedVolume, error) {
	var all []stagedVolume
	add := func(dir, staging, device string) error {
		f, err := load(dir)
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
		all = append(all, stagedVolume{VolumeID{f[keyDriver], f[keyHandle]}, f, dir, staging, device})
		return nil
	}
	drivers, err := safepath.Names(d.plugins())
	if err != nil {
		return nil, err
	}
	for _, driver := range drivers {
		if driver == DevicesDir {
			continue
		}
		hashes, err := safepath.Names(filepath.Join(d.plugins(), driver))
		if err != nil {
			return nil, err
		}
		for _, hash := range hashes {
			dir := filepath.Join(d.plugins(), driver, hash)
			if err := add(dir, filepath.Join(dir, globalDir), ""); err != nil {
				return nil, err
			}
		}
	}
	devices, err := safepath.Names(d.devices())
	if err != nil {
		return nil, err
	}
	for _, volume := range devices {
		p := d.devicePaths(volume, "")
		if err := add(p.stageDataDir, p.staging, volume); err != nil {
			return nil, err
		}
	}
	return all, nil
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

// stagedElsewhere reports whether a volume is staged in a directory other than dir, too. This is
// possible if several PersistentVolumes refer to the volume.
func (d *Drivers) stagedElsewhere(id VolumeID, dir string) (bool, error) {
	all, err := d.readStaged()
	return slices.ContainsFunc(all, func(s stagedVolume) bool { return s.VolumeID == id && s.dir != dir && !s.announced() }), err
}

// restoreStaged restores the data file of a volume that may be staged, if the file was lost or does
// not identify the volume. The restored file records that the volume may be staged. name is the
// name of the PersistentVolume of the published volume.
func (d *Drivers) restoreStaged(id VolumeID, name string) error {
	dir := d.mountPaths(id, "", "").stageDataDir
	f, err := load(dir)
	switch {
	case err == nil && f[keyDriver] == id.Driver && f[keyHandle] == id.Handle:
		return nil
	case err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUnreadable):
		err = facts{keyDriver: id.Driver, keyHandle: id.Handle, keyVolume: name, keyShared: "true", keyState: begun}.save(dir)
	}
	if err != nil {
		return fmt.Errorf("recording in %s that volume %q of driver %s is staged: %w", dir, id.Handle, id.Driver, err)
	}
	return nil
}
