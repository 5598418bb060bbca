package csi

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"podd/runtime/beneath"
)

// stagedVolume is one that is staged, or may be.
type stagedVolume struct {
	Use
	facts   facts
	dir     string // of its facts
	staging string
	device  string // the volume's name; "": it is no device
}

// announced says that nobody was asked to stage it, and only its facts are there.
func (s stagedVolume) announced() bool { return s.facts[keyState] == announced }

// staged lists them, by what is on disk, and devices that are announced. What nobody
// can read is left alone.
func (d *Drivers) staged() ([]stagedVolume, error) {
	var all []stagedVolume
	add := func(dir, staging, device string) error {
		f, err := load(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, errUnreadable):
			if d.isNews(dir) {
				d.o.Log.Error("a volume of a CSI driver is left as it is", "err", err)
			}
			return nil
		case err != nil:
			return err
		}
		all = append(all, stagedVolume{Use{f[keyDriver], f[keyHandle]}, f, dir, staging, device})
		return nil
	}
	drivers, err := beneath.Names(d.plugins())
	if err != nil {
		return nil, err
	}
	for _, driver := range drivers {
		if driver == DevicesDir {
			continue
		}
		hashes, err := beneath.Names(filepath.Join(d.plugins(), driver))
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
	devices, err := beneath.Names(d.devices())
	if err != nil {
		return nil, err
	}
	for _, volume := range devices {
		p := d.device(volume, "")
		if err := add(p.stageData, p.staging, volume); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// isNews says that nobody was told yet of what is wrong with a directory.
func (d *Drivers) isNews(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unreadable[dir] {
		return false
	}
	d.unreadable[dir] = true
	return true
}

// elsewhere says that a volume is staged under another name, too.
func (d *Drivers) elsewhere(u Use, dir string) (bool, error) {
	all, err := d.staged()
	return slices.ContainsFunc(all, func(s stagedVolume) bool { return s.Use == u && s.dir != dir && !s.announced() }), err
}

// restore has a volume that was published as the PersistentVolume of a name be known as
// one that may be staged: what was known of that may be lost.
func (d *Drivers) restore(u Use, name string) error {
	dir := d.mount(u, "", "").stageData
	f, err := load(dir)
	switch {
	case err == nil && f[keyDriver] == u.Driver && f[keyHandle] == u.Handle:
		return nil
	case err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUnreadable):
		err = facts{keyDriver: u.Driver, keyHandle: u.Handle, keyVolume: name, keyShared: "true", keyState: begun}.save(dir)
	}
	if err != nil {
		return fmt.Errorf("writing down in %s that volume %q of driver %s is staged: %w", dir, u.Handle, u.Driver, err)
	}
	return nil
}
