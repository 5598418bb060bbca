package dynconfig

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"podd/runtime/atomicfile"
)

// Names in the directory of --dynamic-config-dir.
const (
	lockFile      = "lock"
	stateFile     = "state.json"
	configMapFile = "configmap.json" // the ConfigMap that the Node names; missing if the Node names none
	checkpointDir = "checkpoints"    // a file DIGEST.json for each checkpoint
)

// Maximum sizes of files in bytes. The documents of a checkpoint are encoded with base64.
const (
	maxStateBytes      = 1 << 20
	maxConfigMapBytes  = 8 << 20
	maxCheckpointBytes = 64 << 20
)

// A store is the directory of --dynamic-config-dir. Configurations can contain credentials, so only root
// can read the files. A store locks the directory until close is called.
type store struct {
	dir  string
	lock *os.File
}

// openStore creates the directory if it does not exist. It returns an error if another podd uses the
// directory, or if other users can write to it.
func openStore(dir string) (*store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the directory of --dynamic-config-dir: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of --dynamic-config-dir: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, fmt.Errorf("opening the directory of --dynamic-config-dir: %w", &fs.PathError{Op: "stat", Path: dir, Err: err})
	}
	if st.Mode&0o022 != 0 || int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("the directory %s of --dynamic-config-dir must belong to the user of podd, and others must not be able to write to it; run: chown %d %[1]s && chmod 0700 %[1]s", dir, os.Geteuid())
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	return &store{dir: dir, lock: lock}, nil
}

// lockDir locks a directory until the file is closed.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, unix.EROFS) { // podd must start although the disk is read-only
		lock, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("locking the directory of --dynamic-config-dir: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking the directory of --dynamic-config-dir: %w", &fs.PathError{Op: "flock", Path: path, Err: err})
		}
		return nil, fmt.Errorf("the directory %s of --dynamic-config-dir is in use by another podd; stop that podd, or use another directory", dir)
	}
	return lock, nil
}

// reopen creates and locks the directory again if it was deleted. isDeleted is also true if that fails.
func (s *store) reopen() (isDeleted bool, err error) {
	held, heldErr := s.lock.Stat()
	present, presentErr := os.Lstat(filepath.Join(s.dir, lockFile))
	if heldErr == nil && presentErr == nil && os.SameFile(held, present) {
		return false, nil
	}
	opened, err := openStore(s.dir)
	if err != nil {
		return true, err
	}
	s.lock.Close()
	s.lock = opened.lock
	return true, nil
}

func (s *store) close() { s.lock.Close() }

// readState returns the stored State. It returns the zero State and an error if the file is damaged.
func (s *store) readState() (State, error) {
	var state State
	if _, err := s.read(stateFile, maxStateBytes, &state); err != nil {
		return State{}, err
	}
	return state, nil
}

func (s *store) writeState(state State) error { return s.write(stateFile, maxStateBytes, state) }

// readConfigMap returns the stored ConfigMap, or nil if none is stored.
func (s *store) readConfigMap() (*ConfigMap, error) {
	var c ConfigMap
	found, err := s.read(configMapFile, maxConfigMapBytes, &c)
	if err != nil || !found {
		return nil, err
	}
	return &c, nil
}

// writeConfigMap stores a ConfigMap. If c is nil, it removes the stored ConfigMap.
func (s *store) writeConfigMap(c *ConfigMap) error {
	if c != nil {
		return s.write(configMapFile, maxConfigMapBytes, c)
	}
	if err := os.Remove(filepath.Join(s.dir, configMapFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the stored configuration of a ConfigMap: %w", err)
	}
	return nil
}

// readCheckpoint returns the checkpoint of a version. It returns an error if the checkpoint is missing or
// damaged.
func (s *store) readCheckpoint(v Version) (checkpoint, error) {
	var c checkpoint
	found, err := s.read(checkpointName(v), maxCheckpointBytes, &c)
	switch {
	case err != nil:
		return checkpoint{}, err
	case !found:
		return checkpoint{}, fmt.Errorf("the checkpoint of %s is missing", v)
	case c.Version.Digest != v.Digest || !c.isIntact():
		return checkpoint{}, fmt.Errorf("the checkpoint of %s is damaged", v)
	}
	return c, nil
}

func (s *store) writeCheckpoint(c checkpoint) error {
	return s.write(checkpointName(c.Version), maxCheckpointBytes, c)
}

// prune removes the checkpoints that state does not need. Errors are ignored, because a later call tries
// again.
func (s *store) prune(state State) {
	entries, err := os.ReadDir(filepath.Join(s.dir, checkpointDir))
	if err != nil {
		return
	}
	for _, e := range entries {
		digest, isCheckpoint := strings.CutSuffix(e.Name(), ".json")
		if isCheckpoint && len(digest) == 2*sha256.Size && digest != state.LastKnownGood.Digest && digest != state.inUse().Digest {
			_ = os.Remove(filepath.Join(s.dir, checkpointDir, e.Name()))
		}
	}
}

func checkpointName(v Version) string { return filepath.Join(checkpointDir, v.Digest+".json") }

// read decodes a file. found is false if the file does not exist.
func (s *store) read(name string, limit int64, value any) (found bool, err error) {
	path := filepath.Join(s.dir, name)
	data, err := atomicfile.Read(path, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, value)
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", path, err)
	}
	return true, nil
}

// write replaces a file, so that it survives a power cut. It writes no file that read would refuse.
func (s *store) write(name string, limit int, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	if len(data) > limit {
		return fmt.Errorf("storing the configuration: %s would have %d bytes (limit %d)", name, len(data), limit)
	}
	if err := atomicfile.Write(filepath.Join(s.dir, name), data); err != nil {
		return fmt.Errorf("storing the configuration: %w", err)
	}
	return nil
}
