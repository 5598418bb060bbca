package csi

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
)

// stands says that what came of a call is still there.
func (d *Drivers) stands(state, at string) bool {
	switch state {
	case d.boot:
		return true
	case d.boot + mounted:
		is, err := isMounted(at)
		return is && err == nil
	}
	return false
}

// stood is the state of what was just done.
func (d *Drivers) stood(at string) (string, error) {
	is, err := isMounted(at)
	if is {
		return d.boot + mounted, err
	}
	return d.boot, err
}

// isMounted asks the mount table, and not what is mounted. The table has real paths.
func isMounted(path string) (bool, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	table, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(filepath.Join(dir, filepath.Base(path))))
	return len(table) > 0, err
}
