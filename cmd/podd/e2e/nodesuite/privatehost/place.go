package privatehost

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A place is what one private host uses on the real host. While a process uses a place, it holds the
// lock.
type place struct {
	dir    string // becomes Root
	cgroup string // name of the parent cgroup of everything in the namespaces
	lock   *os.File
}

// reservePlace reserves the first place that no process uses. The directory of the place is empty, and
// its cgroup does not exist, even if an earlier process was killed. The lock does not depend on $TMPDIR,
// because the cgroup does not either.
func reservePlace() (place, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("podd-private-host-%d", n)
		p := place{dir: filepath.Join(os.TempDir(), name), cgroup: name}
		var err error
		if p.lock, err = tryLock("/run/" + name + ".lock"); errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return place{}, err
		}
		if err := errors.Join(p.remove(), os.Mkdir(p.dir, 0o755)); err != nil {
			return place{}, errors.Join(err, p.lock.Close())
		}
		return p, nil
	}
}

// tryLock opens and locks a file. The error is unix.EWOULDBLOCK if another process has the lock.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
	}
	return f, nil
}

// release removes everything in the place and makes the place available to other processes.
func (p place) release() error { return errors.Join(p.remove(), p.lock.Close()) }

// remove removes the cgroup and the directory.
func (p place) remove() error { return errors.Join(removeCgroups(p.cgroup), os.RemoveAll(p.dir)) }
