package reconcile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"podd/runtime/atomicfile"
)

// An Instance represents a locked root directory. Its ID is random and stored in the
// directory. The ID is the value of runtime.LabelInstance on everything that podd creates.
type Instance struct {
	ID string
	// AdoptedIDs contains the IDs of the adopted instances, whose sandboxes podd manages, too.
	AdoptedIDs []string
	// ContestedIDs contains the IDs of adopted instances that another podd was running when this
	// podd locked its root directory. podd does not manage the sandboxes of these instances.
	ContestedIDs []string

	root string
	lock *os.File
}

// lockFileName is the name of the file in the root directory that LockRoot locks.
const lockFileName = "lock"

// idFileName is the name of the file in the root directory that contains the ID of the instance.
const idFileName = "instance"

// idBytes is the length of an instance ID in bytes.
const idBytes = 8

// LockRoot creates the root directory if necessary and locks the directory until Close is called or
// the process exits. LockRoot returns an error if another podd has locked the directory, or runs an
// instance with the ID in the directory.
func LockRoot(root string) (*Instance, error) {
	if err := os.MkdirAll(root, 0o750); err != nil {
		return nil, fmt.Errorf("creating the root directory: %w", err)
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("opening the root directory: %w", err)
	}
	defer dir.Close()
	lock, err := dir.OpenFile(lockFileName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking root directory %s: %w", root, err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking root directory %s: %w", root, err)
		}
		return nil, fmt.Errorf("root directory %s is in use by another podd; stop that podd, or use another --root-dir", root)
	}
	i := &Instance{root: root, lock: lock}
	if err := i.initIDs(dir); err != nil {
		lock.Close()
		return nil, err
	}
	return i, nil
}

// initIDs reads or creates the instance ID in the locked root directory dir, and reads the IDs of
// adopted instances.
func (i *Instance) initIDs(dir *os.Root) (err error) {
	i.ID, err = readID(dir)
	isNew := errors.Is(err, os.ErrNotExist)
	if isNew {
		i.ID, err = writeID(dir)
	}
	if err != nil {
		return fmt.Errorf("reading the instance ID in %s: %w", filepath.Join(i.root, idFileName), err)
	}
	if !isNew { // no other podd can run an instance with a new ID
		if err := i.checkNotRunning(); err != nil {
			return err
		}
	}
	if err := i.loadAdopted(dir); err != nil {
		return err
	}
	i.writeLockFile()
	return nil
}

// checkNotRunning returns an error if another podd runs an instance with the ID of i.
func (i *Instance) checkNotRunning() error {
	pid, err := FindInstanceProcess(i.ID)
	if err != nil {
		return fmt.Errorf("checking whether another podd runs instance %s: %w", i.ID, err)
	}
	if pid != 0 {
		return fmt.Errorf("instance %s of root directory %s is in use by the podd with PID %d, which adopted it or has a copy of the directory; stop that podd, or remove %s to start as a new instance that does not manage the pods of this instance", i.ID, i.root, pid, filepath.Join(i.root, idFileName))
	}
	return nil
}

// CheckRoot returns an error if the path of the root directory no longer leads to the locked
// directory, for example because a file system was mounted over it. In that case, files that podd
// opens by their path belong to another instance or do not exist.
func (i *Instance) CheckRoot() error {
	lockedDir, err := i.lock.Stat()
	if err != nil {
		return fmt.Errorf("checking root directory %s: %w", i.root, err)
	}
	var cause string
	switch now, err := os.Lstat(filepath.Join(i.root, lockFileName)); {
	case errors.Is(err, fs.ErrNotExist):
		cause = "the lock file in the directory was removed, the directory was moved or unmounted, or another file system was mounted there"
	case err != nil: // for example an I/O error, which does not prove that the directory was replaced
		return nil
	case os.SameFile(lockedDir, now):
		return nil
	default:
		cause = "another directory was mounted or moved there, or the lock file was replaced"
	}
	return fmt.Errorf("root directory %s is not the directory that podd locked when it started: %s; restart podd to use the present directory", i.root, cause)
}

// Close unlocks the root directory.
func (i *Instance) Close() error { return i.lock.Close() }

// ReadInstanceIDs returns the instance ID in a root directory and the IDs of the instances that it
// has adopted. It does not lock the directory. id is "" if no podd has used the directory yet.
func ReadInstanceIDs(root string) (id string, adoptedIDs []string, err error) {
	dir, err := os.OpenRoot(root)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("opening the root directory: %w", err)
	}
	defer dir.Close()
	id, err = readID(dir)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	adoptedIDs, err = readAdopted(dir)
	return id, adoptedIDs, err
}

// readID returns the instance ID in the root directory dir. The error is fs.ErrNotExist if there is
// no ID file.
func readID(dir *os.Root) (string, error) {
	f, err := dir.Open(idFileName)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4*idBytes))
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	if decoded, err := hex.DecodeString(id); err != nil || len(decoded) != idBytes {
		return "", errors.New("not an instance ID; remove the file only if no pod of this instance runs")
	}
	return id, nil
}

// writeID creates an instance ID and stores it durably in the root directory dir. The ID must be on
// disk before podd creates a sandbox with it.
func writeID(dir *os.Root) (string, error) {
	random := make([]byte, idBytes)
	rand.Read(random)
	id := hex.EncodeToString(random)
	return id, atomicfile.WriteIn(dir, idFileName, idFileName+".new", []byte(id+"\n"))
}
