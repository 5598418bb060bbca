package csi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"podd/runtime/atomicfile"
)

// dataFile is the name of the file with the facts of a volume, in the kubelet's format.
const dataFile = "vol_data.json"

// The keys of facts. The kubelet ignores podd's keys.
const (
	keySpec       = "specVolID"
	keyHandle     = "volumeHandle"
	keyDriver     = "driverName"
	keyNode       = "nodeName"
	keyLifecycle  = "volumeLifecycleMode"
	keyAttachment = "attachmentID"
	keySELinux    = "seLinuxMountContext" // SELinux label of the mount; not set if the mount has no label

	keyState            = "podd.state"    // state of the volume; see the states below
	keyPodVolume        = "podd.name"     // name of the pod's volume
	keyPersistentVolume = "podd.volume"   // name of the staged PersistentVolume
	keyShared           = "podd.shared"   // "true" if several PersistentVolumes have the volume's handle
	keyGroup            = "podd.group"    // "podd" if podd must set the group of the files, "driver" if the driver sets the group
	keyCapacity         = "podd.capacity" // capacity in bytes to which the volume was expanded on this node
)

const lifecyclePersistent, lifecycleEphemeral = "Persistent", "Ephemeral"

// These are the states of a volume. After a successful call, the state is the boot ID of the host,
// because the result of the call does not outlive a reboot. If the call has created a mount,
// mountedSuffix is appended. A volume that a kubelet mounted has no state.
const (
	stateAnnounced = "announced" // the driver has not been called
	mountedSuffix  = " mounted"

	// begunPrefix precedes the boot ID of the host if the driver was called, but no call has succeeded
	// yet.
	begunPrefix = "begun "
)

// facts are the content of a data file: the values by their keys.
type facts map[string]string

// setLabel records the SELinux label of the mount; "" means that the mount has no label.
func (f facts) setLabel(label string) {
	delete(f, keySELinux)
	if label != "" {
		f[keySELinux] = label
	}
}

func (f facts) capacity() int64 {
	n, err := strconv.ParseInt(f[keyCapacity], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// maxDataFile is the maximum size in bytes of a data file.
const maxDataFile = 256 << 10

// readFacts reads the facts in a directory. It returns fs.ErrNotExist if the directory or the
// file does not exist, and errUnreadable if the content is invalid.
func readFacts(dir string) (facts, error) {
	path := filepath.Join(dir, dataFile)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return nil, fs.ErrNotExist
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s: %w", path, errUnreadable)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDataFile))
	if errors.Is(err, unix.EISDIR) {
		return nil, fmt.Errorf("%s: %w", path, errUnreadable)
	}
	if err != nil {
		return nil, err
	}
	var values facts
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", path, errUnreadable)
	}
	if err := checkDriver(values[keyDriver]); err != nil || values[keyHandle] == "" {
		return nil, fmt.Errorf("%s: %w", path, errUnreadable)
	}
	return values, nil
}

// errUnreadable is the error for a data file without valid facts. A crash, or another program, may
// cause such a file.
var errUnreadable = errors.New("the data file is damaged and does not identify a volume; remove the file if nothing is mounted in its directory")

// save writes the facts to the data file in a directory, and creates the directory if necessary.
// After save returns, the file survives a power failure.
func (f facts) save(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return atomicfile.WriteIn(root, dataFile, dataFile+".new", append(text, '\n'))
}

// removeFacts removes the data file in a directory. It then removes the directory, unless the
// directory contains files of the driver.
func removeFacts(dir string) error {
	if err := remove(filepath.Join(dir, dataFile+".new")); err != nil {
		return err
	}
	if err := remove(filepath.Join(dir, dataFile)); err != nil {
		return err
	}
	if err := remove(dir); !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	return nil
}

// remove removes a file or an empty directory. It returns nil if path does not exist.
func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// makeDir creates a directory. If it exists, makeDir does not access it, because a file
// system may be mounted there.
func makeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o750); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
