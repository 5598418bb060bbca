package stack

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// removeBridge takes a bridge down and deletes it. It does nothing if the bridge does not exist.
func removeBridge(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("removing bridge %s: %w", name, err)
	}
	defer unix.Close(fd)
	ifreq, err := unix.NewIfreq(name)
	if err != nil {
		return fmt.Errorf("removing bridge %s: %w", name, err)
	}
	ifreq.SetUint16(0) // clear all flags, including IFF_UP
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifreq); err != nil {
		if errors.Is(err, unix.ENODEV) {
			return nil
		}
		return fmt.Errorf("setting bridge %s down: %w", name, err)
	}
	if err := deleteBridge(fd, name); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("removing bridge %s: %w", name, err)
	}
	return nil
}

// deleteBridge calls the ioctl SIOCBRDELBR. unix.IoctlIfreq cannot be used, because the ioctl
// takes a name and not an ifreq. The error ENXIO means that there is no such bridge.
func deleteBridge(fd int, name string) error {
	text, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCBRDELBR, uintptr(unsafe.Pointer(text))); errno != 0 {
		return errno
	}
	return nil
}
