package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"podd/manifest/disk"
	"podd/runtime/atomicfile"
)

const (
	dirMode    = 0o700
	recordName = "target.json"
	// maxRecord is the maximum size in bytes of a record.
	maxRecord = 1 << 20
)

// A target is the open and locked directory of an iSCSI or Fibre Channel target in Manager.Root.
type target struct {
	m    Manager
	dir  string
	root *os.Root
	file *os.File // has the lock
}

// A record contains the actions that podd must undo when the disks of a target are detached. It
// contains no secrets.
type record struct {
	ISCSI *iscsiRecord `json:"iscsi,omitempty"`
	FC    *disk.FC     `json:"fc,omitempty"`
}

// lock creates the directory of a target and locks it until the caller calls unlock. It waits for the
// lock until ctx is done.
func (m Manager) lock(ctx context.Context, id string) (*target, error) {
	dir := filepath.Join(m.Root, id)
	for {
		if err := os.MkdirAll(dir, dirMode); err != nil {
			return nil, err
		}
		t, err := m.tryLock(dir)
		if t != nil || err != nil {
			return t, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another operation on the disk's target: %w", context.Cause(ctx))
		case <-time.After(lockRetryInterval):
		}
	}
}

// tryLock locks a directory. It returns nil without an error if the lock is not free, or if another
// operation has removed the directory in the meantime.
func (m Manager) tryLock(dir string) (*target, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := &target{m: m, dir: dir, root: root}
	if t.file, err = root.Open("."); err != nil {
		root.Close()
		return nil, err
	}
	err = unix.Flock(int(t.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK || err == unix.EINTR {
		t.unlock()
		return nil, nil
	}
	if err == nil {
		var isCurrent bool
		if isCurrent, err = t.isCurrent(); err == nil && isCurrent {
			return t, nil
		}
	}
	t.unlock()
	return nil, err
}

// isCurrent reports whether the directory that t has locked still exists.
func (t *target) isCurrent() (bool, error) {
	lockedDir, err := t.file.Stat()
	if err != nil {
		return false, err
	}
	currentDir, err := os.Lstat(t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(lockedDir, currentDir), err
}

func (t *target) unlock() {
	t.file.Close()
	t.root.Close()
}

// load returns the record of the target. The record is empty if there is none yet.
func (t *target) load() (r record, err error) {
	text, err := atomicfile.Read(filepath.Join(t.dir, recordName), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return record{}, fmt.Errorf("reading the state of an attached disk: %w; detach the disk, and remove the directory %s", err, t.dir)
	}
	return r, nil
}

// save writes the record of the target. After save returns, the record survives a power failure.
func (t *target) save(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.WriteIn(t.root, recordName, recordName+".new", append(text, '\n'))
}
