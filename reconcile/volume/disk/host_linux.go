package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Host runs programs and accesses the devices of this node. All fields are required.
type Host struct {
	// Run runs a program and returns its output. If the program exits with a code other than 0, the
	// error has the method ExitCode. After limit, the program is killed.
	Run func(ctx context.Context, limit time.Duration, p Program, args ...string) (output string, err error)
	// Call runs a function that may hang in the kernel, with a timeout. For each subject, only one
	// function runs at a time. After its ctx is done, the function must change nothing.
	Call func(ctx context.Context, limit time.Duration, subject string, call func(context.Context) error) error
	// Flush is the function Flush of this package, except in tests.
	Flush func(path string) error
	// Sys is the path of sysfs, and Dev is the path of the directory of devices. ISCSI lists the
	// directories in which iscsiadm may store its database.
	Sys, Dev string
	ISCSI    []string
}

// A Program is a program of the host.
type Program struct {
	Name string
	// Remedy describes for users how to install the program.
	Remedy string
}

var (
	iscsiadm   = Program{"iscsiadm", "install the package open-iscsi (Debian, Ubuntu) or iscsi-initiator-utils"}
	multipath  = Program{"multipath", "install the package multipath-tools (Debian, Ubuntu) or device-mapper-multipath"}
	blkid      = Program{"blkid", "install the package util-linux"}
	fsck       = Program{"fsck", "install the package util-linux"}
	mountTool  = Program{"mount", "install the package mount (Debian, Ubuntu) or util-linux"}
	umountTool = Program{"umount", "install the package mount (Debian, Ubuntu) or util-linux"}
)

// Check returns an error if the host has no program that attaches the disk of v.
func (v Volume) Check(find func(Program) error) error {
	if v.ISCSI == nil {
		return nil
	}
	return find(iscsiadm)
}

// exitCode returns the exit code of a program that failed with err, or -1 if it did not exit.
func exitCode(err error) int {
	var e interface{ ExitCode() int }
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	return -1
}

const (
	// deviceTimeout is the maximum time until a device appears after a scan, as in the kubelet.
	deviceTimeout = 30 * time.Second
	// multipathTimeout is the maximum time until multipathd creates the device of several paths, as
	// in the kubelet.
	multipathTimeout = 10 * time.Second
	// accessTimeout is the timeout of an access to a device, such as a scan. The kernel retries a
	// command to a device for about this time.
	accessTimeout = time.Minute
	pollInterval  = 200 * time.Millisecond
)

// poll calls find until it returns true or an error, but not longer than limit.
func poll(ctx context.Context, limit time.Duration, find func() (bool, error)) (found bool, err error) {
	for end := time.Now().Add(limit); ; {
		if found, err = find(); found || err != nil || time.Now().After(end) {
			return found, err
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}

// names returns the names in a directory, sorted. It returns nil if the directory does not exist.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// readLine returns the content of a file in sysfs, or "" if the file cannot be read.
func readLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// write writes a command to a file in sysfs. The kernel may process the command before it returns.
func (h Host) write(ctx context.Context, path, text string) error {
	return h.Call(ctx, accessTimeout, "writing "+path, func(context.Context) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	})
}

// multipathDevice returns the name of the dm-multipath device that contains a device, such as
// "dm-0", or "" if there is none.
func (h Host) multipathDevice(device string) (string, error) {
	holders, err := names(filepath.Join(h.Sys, "block", device, "holders"))
	for _, holder := range holders {
		if h.isMultipath(holder) {
			return holder, nil
		}
	}
	return "", err
}

// isMultipath reports whether a device is a dm-multipath device.
func (h Host) isMultipath(device string) bool {
	return strings.HasPrefix(readLine(filepath.Join(h.Sys, "block", device, "dm/uuid")), "mpath-")
}

// selectDevice returns the path of the device to use. This is the dm-multipath device that contains
// the devices, if there is one, otherwise the first device. If hasPaths is true, the disk may have
// several paths, and selectDevice waits for the dm-multipath device.
func (h Host) selectDevice(ctx context.Context, devices []string, hasPaths bool) (string, error) {
	name, limit := devices[0], time.Duration(0)
	if _, err := os.Stat(filepath.Join(h.Sys, "module/dm_multipath")); err == nil && hasPaths { // without the module there is no multipathd
		limit = multipathTimeout
	}
	_, err := poll(ctx, limit, func() (bool, error) {
		for _, device := range devices {
			if dm, err := h.multipathDevice(device); dm != "" || err != nil {
				name = dm
				return dm != "", err
			}
		}
		return false, nil
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(h.Dev, name)
	exists, err := poll(ctx, deviceTimeout, func() (bool, error) {
		_, err := os.Lstat(path)
		return err == nil, nil
	})
	if err == nil && !exists {
		err = fmt.Errorf("the kernel has the device %s, but %s does not exist; mount devtmpfs at %s, or run udev", name, path, h.Dev)
	}
	return path, err
}

// removeDevices removes the devices of a disk. It flushes and removes their dm-multipath devices first.
// It returns an error if a device is in use.
func (h Host) removeDevices(ctx context.Context, devices []string) error {
	var maps []string
	for _, device := range devices {
		dm, err := h.multipathDevice(device)
		if err != nil {
			return err
		}
		if dm != "" && !slices.Contains(maps, dm) {
			maps = append(maps, dm)
		}
	}
	for _, dm := range maps {
		if err := h.flush(ctx, dm); err != nil {
			return err
		}
		if output, err := h.Run(ctx, accessTimeout, multipath, "-f", filepath.Join(h.Dev, dm)); err != nil {
			return fmt.Errorf("removing the multipath device %s: %w", dm, programError(output, err))
		}
	}
	for _, device := range devices {
		if err := h.flush(ctx, device); err != nil {
			return err
		}
	}
	for _, device := range devices {
		err := h.write(ctx, filepath.Join(h.Sys, "block", device, "device/delete"), "1")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("deleting the device %s: %w", device, err)
		}
	}
	return nil
}

// Flush writes the unwritten data of a device. It returns EBUSY if the device is mounted, or if another
// device uses it, because the kernel then does not open it exclusively.
func Flush(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.IoctlSetInt(fd, unix.BLKFLSBUF, 0)
}

// flush calls h.Flush for a device. It returns nil if the device does not exist any more.
func (h Host) flush(ctx context.Context, device string) error {
	path := filepath.Join(h.Dev, device)
	err := h.Call(ctx, accessTimeout, "flushing "+path, func(context.Context) error { return h.Flush(path) })
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s is in use by another program or device; podd retries (lsblk %s lists its mounts)", path, path)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return nil
	case err != nil:
		return fmt.Errorf("flushing %s: %w", path, err)
	}
	return nil
}
