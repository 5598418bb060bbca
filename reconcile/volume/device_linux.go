package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// device is the path of a PersistentVolume that is a block device. Links on the
// way are followed, as names in /dev/disk are links; the path is that of the very
// device that was looked at, without links. Its driver is not woken: O_PATH opens
// the name alone. The kubelet puts a loop device before it, which would keep it
// from being detached unseen; podd does not.
func device(pv *v1.PersistentVolume) (string, error) {
	path := filepath.Clean(pv.Spec.Local.Path)
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return path, fmt.Errorf("the device of the PersistentVolume %q is not there; attach the disk or load its driver", pv.Name)
	}
	if err != nil {
		return path, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return path, bare(err)
	}
	if !hostPathTypes[v1.HostPathBlockDev].is(info.Mode()) {
		return path, fmt.Errorf("is %s, and the PersistentVolume %q has the volumeMode Block; name a block device, or use Filesystem", nounOf(info.Mode()), pv.Name)
	}
	real, err := os.Readlink(held(f))
	if err == nil && strings.HasSuffix(real, " (deleted)") {
		err = fs.ErrNotExist
	}
	return real, bareOf(err)
}
