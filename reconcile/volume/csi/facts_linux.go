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

	"podd/manifest/durable"
)

// dataFile has the facts of a volume, in the kubelet's form.
const dataFile = "vol_data.json"

// Keys of the kubelet's, and podd's own.
const (
	keySpec       = "specVolID"
	keyHandle     = "volumeHandle"
	keyDriver     = "driverName"
	keyNode       = "nodeName"
	keyLifecycle  = "volumeLifecycleMode"
	keyAttachment = "attachmentID"

	keyState    = "podd.state"    // of the staging, or of the publishing
	keyName     = "podd.name"     // of the pod's volume
	keyVolume   = "podd.volume"   // of the PersistentVolume that is staged
	keyShared   = "podd.shared"   // "true": PersistentVolumes of other names are this volume
	keyGroup    = "podd.group"    // "podd": its files are podd's to give to the pod's group
	keyCapacity = "podd.capacity" // to which it was made to grow
)

const persistent, ephemeral = "Persistent", "Ephemeral"

// States of a volume that are no end of a call. That of one that was done is the
// machine's boot ID, with " mounted" where a mount came of it: neither outlives a
// reboot. There is none of a volume of a kubelet.
const (
	announced = "announced" // the driver was not asked yet
	begun     = "begun"
	mounted   = " mounted"
)

// facts are what a data file says.
type facts map[string]string

func (f facts) capacity() int64 {
	n, err := strconv.ParseInt(f[keyCapacity], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// mostFacts bounds a data file.
const mostFacts = 256 << 10

// load reads the facts in a directory; fs.ErrNotExist where there are none, or no
// directory.
func load(dir string) (facts, error) {
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
	text, err := io.ReadAll(io.LimitReader(f, mostFacts))
	if errors.Is(err, unix.EISDIR) {
		return nil, fmt.Errorf("%s: %w", path, errUnreadable)
	}
	if err != nil {
		return nil, err
	}
	var all facts
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, errUnreadable)
	}
	if err := checkDriver(all[keyDriver]); err != nil || all[keyHandle] == "" {
		return nil, fmt.Errorf("%s: %w", path, errUnreadable)
	}
	return all, nil
}

// errUnreadable is of a file that a crash or another program left.
var errUnreadable = errors.New("it does not say whose volume this is; if nothing is mounted beside it, remove it")

// save writes the facts in a directory, which it makes, so that they outlive a
// power cut.
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
	return durable.WriteIn(root, dataFile, dataFile+".new", append(text, '\n'))
}

// forget removes the facts in a directory, and it, unless a driver has something
// there.
func forget(dir string) error {
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

// remove removes a file or an empty directory, which need not be there.
func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// makeDir makes a directory, and looks at nothing that is mounted there.
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
