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

// device returns the path without links of a PersistentVolume that is a block device. Links
// are followed, because the names in /dev/disk are links. The device is opened with O_PATH,
// so that its driver is not called. Unlike the kubelet, podd does not attach a loop device,
// which would prevent the device from being detached.
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
		return path, withoutPath(err)
	}
	if !hostPathTypes[v1.HostPathBlockDev].is(info.Mode()) {
		return path, fmt.Errorf("is %s, and the PersistentVolume %q has the volumeMode Block; name a block device, or use Filesystem", describeMode(info.Mode()), pv.Name)
	}
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err == nil && strings.HasSuffix(real, " (deleted)") {
		err = fs.ErrNotExist
	}
	return real, withoutPath(err)
}
