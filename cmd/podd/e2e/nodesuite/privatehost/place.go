package privatehost

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A place contains the resources of one private host on the real host. The process that uses the place
// holds its lock.
type place struct {
	dir    string // becomes Root
	cgroup string // name of the parent cgroup of everything in the namespaces
	lock   *os.File
}

// The lock files of places are /run/podd-private-host-N.lock. They are not in $TMPDIR, because processes
// with different values of $TMPDIR use the same cgroups.
const (
	lockPrefix = "/run/podd-private-host-"
	lockSuffix = ".lock"
)

// reservePlace returns the first place that no process uses. Its directory is empty, and its cgroup does
// not exist. reservePlace also removes everything that killed processes have left in other places.
func reservePlace() (place, error) {
	if err := removeUnused(); err != nil {
		return place{}, err
	}
	for n := 1; ; n++ {
		p, err := lockPlace(fmt.Sprint(lockPrefix, n, lockSuffix))
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return place{}, err
		}
		if err := errors.Join(p.remove(), os.Mkdir(p.dir, 0o755)); err != nil { // a reboot can remove the lock file only
			return place{}, errors.Join(err, p.lock.Close())
		}
		return p, nil
	}
}

// removeUnused removes the files and cgroups in all places that no process uses.
func removeUnused() error {
	locks, err := filepath.Glob(lockPrefix + "*" + lockSuffix)
	for _, path := range locks {
		p, lockErr := lockPlace(path)
		switch {
		case lockErr == nil:
			err = errors.Join(err, p.release())
		case !errors.Is(lockErr, unix.EWOULDBLOCK):
			err = errors.Join(err, lockErr)
		}
	}
	return err
}

// lockPlace locks the lock file of a place, which it creates if necessary, and returns the place. The
// caller must release the place. The error wraps unix.EWOULDBLOCK if another process has the lock.
func lockPlace(path string) (place, error) {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return place{}, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return place{}, errors.Join(fmt.Errorf("locking %s: %w", path, err), lock.Close())
	}
	name := strings.TrimSuffix(filepath.Base(path), lockSuffix)
	return place{dir: filepath.Join(os.TempDir(), name), cgroup: name, lock: lock}, nil
}

// remove removes the cgroup and the directory.
func (p place) remove() error { return errors.Join(removeCgroups(p.cgroup), os.RemoveAll(p.dir)) }

// release removes everything in the place and makes the place available to other processes.
func (p place) release() error { return errors.Join(p.remove(), p.lock.Close()) }
