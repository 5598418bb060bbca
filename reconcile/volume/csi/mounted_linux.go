package csi

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// isStateCurrent reports whether the result of a successful call still exists. state was recorded
// after the call. The result no longer exists after a reboot of the host, or if the mount at path
// was removed.
func (d *Drivers) isStateCurrent(state, path string) bool {
	switch state {
	case d.bootID:
		return true
	case d.bootID + mountedSuffix:
		isMount, err := isMounted(path)
		return isMount && err == nil
	}
	return false
}

// isFromEarlierBoot reports whether state was recorded for a call during an earlier boot of the host.
func (d *Drivers) isFromEarlierBoot(state string) bool {
	switch strings.TrimPrefix(state, begunPrefix) {
	case "", stateAnnounced, d.bootID, d.bootID + mountedSuffix:
		return false
	}
	return true
}

// begunState returns the state of a volume for which no call is known to have succeeded.
func (d *Drivers) begunState() string { return begunPrefix + d.bootID }

// currentState returns the state to record after a successful call for path. The state
// contains the boot ID of the host and whether path is a mount point.
func (d *Drivers) currentState(path string) (string, error) {
	isMount, err := isMounted(path)
	if isMount {
		return d.bootID + mountedSuffix, err
	}
	return d.bootID, err
}

// isMounted reports whether path is a mount point according to the mount table. It does
// not access the mounted file system, because the access may hang. The mount table contains
// paths without symbolic links.
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
