package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"podd/reconcile/eviction/pressure"
)

// The values of Directory.Purpose.
const (
	PurposeRootDir = "root directory"
	PurposeRunDir  = "run directory"
	PurposeLogsDir = "pod logs directory"
	PurposeImageFS = "image file system"
)

// diskThresholds returns the thresholds of a directory and the prefix of their eviction signals.
// The run directory has no thresholds, because podd stores only a few bytes in it.
func diskThresholds(p pressure.Policy, purpose string) (signals string, bytes, inodes pressure.Limit) {
	switch purpose {
	case PurposeRootDir, PurposeLogsDir:
		return "nodefs", p.Hard(pressure.NodefsAvailable), p.Hard(pressure.NodefsInodesFree)
	case PurposeImageFS:
		return "imagefs", p.Hard(pressure.ImagefsAvailable), p.Hard(pressure.ImagefsInodesFree)
	}
	return "", pressure.Limit{}, pressure.Limit{}
}

func checkDisks(f *Facts, r *Result) {
	var details []string
	for _, d := range f.Directories {
		checkDirectory(f.Config.Eviction, d, r)
		if d.Err == nil && (d.Purpose == PurposeRootDir || d.Purpose == PurposeImageFS) {
			details = append(details, fmt.Sprintf("%s of %s free for %s", formatMiB(d.Space.AvailableBytes), formatMiB(d.Space.CapacityBytes), shortPurpose(d)))
		}
	}
	r.Detail = cmp.Or(strings.Join(details, ", "), "unknown size")
}

// shortPurpose returns the short name of a directory.
func shortPurpose(d Directory) string {
	if d.Purpose == PurposeImageFS {
		return "images"
	}
	return "pods"
}

func checkDirectory(p pressure.Policy, d Directory, r *Result) {
	name := d.Purpose + " " + d.Path
	switch {
	case d.Err != nil:
		r.fail(accessRemedy(d.Err), "%s: %v", name, d.Err)
		return
	case d.IsReadOnly:
		r.fail("mount the file system read-write; if the kernel made it read-only because of a disk error, see the output of \"dmesg\"", "%s is on a read-only file system (%s)", name, d.Existing)
		return
	case d.IsNoExec && d.Purpose == PurposeRootDir:
		r.warn("mount the file system without noexec, or use another --root-dir", "%s is on a file system with noexec, so containers cannot execute files in volumes", name)
	}
	signals, bytes, inodes := diskThresholds(p, d.Purpose)
	const remedy = "remove files, or enlarge the file system"
	switch s := d.Space; {
	case s.CapacityBytes > 0 && s.AvailableBytes == 0:
		r.fail(remedy, "%s: no space is left", name)
	case bytes.IsCrossed(int64(s.CapacityBytes), int64(s.AvailableBytes)):
		r.warn(remedy, "%s: %s are available, less than the threshold %s.available (%s)", name, formatMiB(s.AvailableBytes), signals, formatMiB(uint64(bytes.AmountFor(int64(s.CapacityBytes)))))
	}
	switch s := d.Space; {
	case s.Inodes > 0 && s.InodesFree == 0:
		r.fail(remedy, "%s: no inodes are left", name)
	case inodes.IsCrossed(int64(s.Inodes), int64(s.InodesFree)):
		r.warn(remedy, "%s: %d inodes are free, less than the threshold %s.inodesFree (%d)", name, s.InodesFree, signals, inodes.AmountFor(int64(s.Inodes)))
	}
}

// ErrHungDisk is the error if a system call on a directory does not return.
var ErrHungDisk = errors.New("the disk does not respond")

// accessRemedy returns the remedy for an error of accessing a directory.
func accessRemedy(err error) string {
	switch {
	case slices.ContainsFunc([]error{ErrHungDisk, unix.EIO, unix.ESTALE, unix.ENOTCONN}, func(e error) bool { return errors.Is(err, e) }):
		return "see the output of \"dmesg\", repair the disk or the connection to the file server, or configure another directory"
	case errors.Is(err, unix.ENOTDIR):
		return "move the file, or configure another directory"
	}
	return "correct the permissions and attributes of the directory, or configure another one"
}

func formatMiB(bytes uint64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
