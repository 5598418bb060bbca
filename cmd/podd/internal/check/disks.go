package check

import (
	"cmp"
	"fmt"
	"strings"

	"podd/cmd/podd/internal/config"
)

// The values of Directory.Use.
const (
	RootDir = "root directory"
	RunDir  = "run directory"
	LogsDir = "pod logs directory"
	ImageFS = "image file system"
)

// diskThresholds returns the thresholds of a directory and the prefix of their eviction signals.
// The run directory has no thresholds, because podd stores only a few bytes in it.
func diskThresholds(p config.Pressure, use string) (signals string, bytes, inodes config.Threshold) {
	switch use {
	case RootDir, LogsDir:
		return "nodefs", p.Nodefs, p.NodefsInodes
	case ImageFS:
		return "imagefs", p.Imagefs, p.ImagefsInodes
	}
	return "", config.Threshold{}, config.Threshold{}
}

func checkDisks(f *Facts, r *Result) {
	var details []string
	for _, d := range f.Directories {
		checkDirectory(f.Config.Pressure, d, r)
		if d.Err == nil && (d.Use == RootDir || d.Use == ImageFS) {
			details = append(details, fmt.Sprintf("%s of %s free for %s", formatMiB(d.Space.AvailableBytes), formatMiB(d.Space.CapacityBytes), use(d)))
		}
	}
	r.Detail = cmp.Or(strings.Join(details, ", "), "unknown size")
}

// use returns the short name of a directory.
func use(d Directory) string {
	if d.Use == ImageFS {
		return "images"
	}
	return "pods"
}

func checkDirectory(p config.Pressure, d Directory, r *Result) {
	name := d.Use + " " + d.Path
	switch {
	case d.Err != nil:
		r.fail("create the directory, or configure another one", "%s: %v", name, d.Err)
		return
	case d.IsReadOnly:
		r.fail("mount the file system read-write; after an error of the disk, see dmesg", "%s is on a read-only file system (%s)", name, d.Existing)
		return
	case d.IsNoExec && d.Use == RootDir:
		r.warn("mount the file system without noexec, or use another --root-dir", "%s is on a file system with noexec, so that containers cannot execute files in volumes", name)
	}
	signals, bytes, inodes := diskThresholds(p, d.Use)
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

func formatMiB(bytes uint64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
