package reconcile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"podd/manifest/durable"
)

// Instance is the ownership of one root directory. Its ID, random and kept in
// the directory, is the value of runtime.LabelInstance on all that podd makes.
type Instance struct {
	ID   string
	lock *os.File
}

const idBytes = 8

// Own locks root, making it when it is missing, until Close or the end of the
// process. The error says so when another podd has it.
func Own(root string) (*Instance, error) {
	if err := os.MkdirAll(root, 0o750); err != nil {
		return nil, fmt.Errorf("making the root directory: %w", err)
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("opening the root directory: %w", err)
	}
	defer dir.Close()
	lock, err := dir.OpenFile("lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking root directory %s: %w", root, err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking root directory %s: %w", root, err)
		}
		return nil, fmt.Errorf("root directory %s is in use by another podd; stop that one, or give this one its own --root-dir", root)
	}
	id, err := readID(dir)
	if errors.Is(err, os.ErrNotExist) {
		id, err = writeID(dir)
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("reading the instance id in %s: %w", filepath.Join(root, "instance"), err)
	}
	return &Instance{id, lock}, nil
}

// Close gives the root directory up.
func (i *Instance) Close() error { return i.lock.Close() }

// PeekID returns the instance id of a root directory without owning it, "" when
// no podd ever had it.
func PeekID(root string) (string, error) {
	dir, err := os.OpenRoot(root)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("opening the root directory: %w", err)
	}
	defer dir.Close()
	id, err := readID(dir)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return id, err
}

func readID(dir *os.Root) (string, error) {
	f, err := dir.Open("instance")
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4*idBytes))
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != idBytes {
		return "", errors.New("it is not an instance id; remove it only when none of its pods run")
	}
	return id, nil
}

// writeID makes a new id durable before anything can carry it.
func writeID(dir *os.Root) (string, error) {
	raw := make([]byte, idBytes)
	rand.Read(raw)
	id := hex.EncodeToString(raw)
	return id, durable.WriteIn(dir, "instance", "instance.new", []byte(id+"\n"))
}
