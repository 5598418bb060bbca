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

// devicePath returns the path of the block device of a PersistentVolume. The result contains no
// symbolic links, because devicePath follows them: the names in /dev/disk are links. It opens the
// device with O_PATH, so that the driver of the device is not called.
//
// Unlike the kubelet, podd does not attach a loop device to the block device, because a loop device
// would prevent the block device from being detached.
func devicePath(pv *v1.PersistentVolume) (string, error) {
	path := filepath.Clean(pv.Spec.Local.Path)
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return path, fmt.Errorf("the device of the PersistentVolume %q does not exist; attach the disk or load its driver", pv.Name)
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
	if !hostPathTypes[v1.HostPathBlockDev].matches(info.Mode()) {
		return path, fmt.Errorf("is %s, but the PersistentVolume %q has volumeMode Block; use the path of a block device, or volumeMode Filesystem", describeMode(info.Mode()), pv.Name)
	}
	realPath, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err == nil && strings.HasSuffix(realPath, " (deleted)") {
		err = fs.ErrNotExist
	}
	return realPath, withoutPath(err)
}
