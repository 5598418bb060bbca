package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/moby/sys/mountinfo"

	"podd/manifest/disk"
	"podd/reconcile/volume/selinux"
)

const (
	mountTimeout = 2 * time.Minute
	// formatTimeout is the timeout of mkfs and fsck, which may process a large disk.
	formatTimeout = time.Hour
)

// findUsableMount reports whether the filesystem of v, which is the disk n, is mounted at path. It returns
// an error if v cannot use the mount: the mount is read-only, or has another SELinux label (*selinux.Error)
// and another pod or volume uses the disk. Otherwise it unmounts a filesystem with another label.
func (t *target) findUsableMount(ctx context.Context, n name, path string, v Volume) (isMounted bool, err error) {
	info, err := findMount(path)
	if info == nil || err != nil {
		return false, err
	}
	if !v.isReadOnly() && slices.Contains(strings.Split(info.VFSOptions, ","), "ro") {
		return true, errors.New("the filesystem of the disk is mounted read-only: another pod uses it with readOnly, or the kernel has found errors in it; remove the other pods that use the disk")
	}
	conflict := v.SELinux.CheckOther(selinux.ContextOption(info.VFSOptions))
	if conflict == nil {
		return true, nil
	}
	users, err := t.m.users(n)
	if err != nil {
		return true, err
	}
	isMountedForPod, err := hasOtherMount(info)
	switch {
	case err != nil:
		return true, err
	case len(users) > 1, isMountedForPod: // one of the users is the pod of v
		return true, conflict
	}
	return false, t.m.Host.unmount(ctx, path)
}

// findMount returns the topmost mount at path, or nil if there is none. It reads the mount table only,
// because an access to the filesystem may hang. The table contains paths without symbolic links.
func findMount(path string) (*mountinfo.Info, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil, ignoreNotExist(err)
	}
	table, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(filepath.Join(dir, filepath.Base(path))))
	if err != nil || len(table) == 0 {
		return nil, err
	}
	return table[len(table)-1], nil
}

// hasOtherMount reports whether the filesystem of m is also mounted at another path, such as a volume in
// the directory of a pod.
func hasOtherMount(m *mountinfo.Info) (bool, error) {
	table, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) {
		return i.Major != m.Major || i.Minor != m.Minor || i.Mountpoint == m.Mountpoint, false
	})
	return len(table) > 0, err
}

// mount mounts the filesystem on a device. If v is not read-only, mount first formats the device if
// it contains no data, and otherwise checks the filesystem.
func (h Host) mount(ctx context.Context, device, path string, v Volume) error {
	fsType := cmp.Or(v.FSType, disk.DefaultFilesystem)
	if errs := disk.ValidateFilesystem(fsType, nil); len(errs) > 0 { // the API server does not validate this field
		return errs.ToAggregate()
	}
	if errs := disk.ValidateMountOptions(v.MountOptions, nil); len(errs) > 0 {
		return errs.ToAggregate()
	}
	options := slices.Clone(v.MountOptions)
	if v.isReadOnly() {
		options = append(options, "ro")
	}
	if label := v.SELinux.Option(); label != "" {
		options = append(options, label)
	}
	content, err := h.detectContent(ctx, device)
	switch {
	case err != nil:
		return err
	case content == "" && v.isReadOnly():
		return fmt.Errorf("%s contains no filesystem, and the volume is read-only; use the volume without readOnly first", device)
	case content == "":
		err = h.format(ctx, device, fsType)
	case !v.isReadOnly():
		err = h.check(ctx, device)
	}
	if err != nil {
		return err
	}
	args := []string{"-i", "-t", fsType} // -i: no helper program
	if len(options) > 0 {
		args = append(args, "-o", strings.Join(options, ","))
	}
	output, err := h.Run(ctx, mountTimeout, mountTool, append(args, "--", device, path)...)
	if err == nil {
		return nil
	}
	err = programError(output, err)
	if content != "" && content != fsType {
		err = fmt.Errorf("%w (the disk contains %s, but fsType is %s)", err, content, fsType)
	}
	return fmt.Errorf("mounting %s: %w", device, err)
}

// isReadOnly reports whether the filesystem must be mounted read-only.
func (v Volume) isReadOnly() bool {
	return v.ReadOnly || slices.Contains(disk.SplitMountOptions(v.MountOptions), "ro")
}

// partitions is the result of detectContent for a device with a partition table.
const partitions = "a partition table"

// detectContent returns the type of the filesystem on a device, or partitions. It returns "" if
// blkid finds no data that it recognizes.
func (h Host) detectContent(ctx context.Context, device string) (string, error) {
	output, err := h.Run(ctx, mountTimeout, blkid, "-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device)
	switch {
	case exitCode(err) == 2: // no data was found
		return "", nil
	case err != nil:
		return "", fmt.Errorf("detecting the filesystem on %s: %w", device, programError(output, err))
	}
	return parseContent(output), nil
}

// parseContent parses the output of blkid.
func parseContent(output string) (content string) {
	for line := range strings.Lines(output) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "PTTYPE":
			return partitions
		case "TYPE":
			content = value
		}
	}
	return cmp.Or(content, "unknown data")
}

func (h Host) format(ctx context.Context, device, fsType string) error {
	args := map[string][]string{"ext3": {"-F", "-m0"}, "ext4": {"-F", "-m0"}, "xfs": {"-f"}}[fsType]
	packages := map[string]string{"xfs": "xfsprogs", "btrfs": "btrfs-progs"}
	mkfs := Program{"mkfs." + fsType, "install the package " + cmp.Or(packages[fsType], "e2fsprogs")}
	output, err := h.Run(ctx, formatTimeout, mkfs, append(slices.Clone(args), device)...)
	if err != nil {
		return fmt.Errorf("formatting %s as %s: %w", device, fsType, programError(output, err))
	}
	return nil
}

// uncorrectedErrors is the exit code of fsck for errors that it did not correct.
const uncorrectedErrors = 4

// check runs fsck, which repairs the filesystem. Like the kubelet, podd ignores the failures of
// fsck, except errors in the filesystem that fsck could not correct.
func (h Host) check(ctx context.Context, device string) error {
	output, err := h.Run(ctx, formatTimeout, fsck, "-a", device)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case exitCode(err) == uncorrectedErrors:
		return fmt.Errorf("fsck found errors on %s that it could not correct: %s; repair the filesystem", device, oneLine(output))
	}
	return nil
}

// unmount unmounts a path. It returns nil if nothing is mounted there.
func (h Host) unmount(ctx context.Context, path string) error {
	info, err := findMount(path)
	if info == nil || err != nil {
		return err
	}
	output, err := h.Run(ctx, mountTimeout, umountTool, "-n", "--", path)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if info, findErr := findMount(path); info == nil || findErr != nil {
		return findErr
	}
	if err == nil {
		err = errors.New("the mount still exists")
	}
	return fmt.Errorf("unmounting %s: %w; podd retries (fuser -vm lists the processes that use it)", path, programError(output, err))
}

// maxOutput is the maximum length of a program's output in messages, in bytes.
const maxOutput = 400

// programError returns an error with the output of a program that failed with err.
func programError(output string, err error) error {
	text := oneLine(output)
	if text == "" || exitCode(err) < 0 {
		return err
	}
	return fmt.Errorf("%s (%w)", text, err)
}

// oneLine returns the output of a program as one line of printable characters.
func oneLine(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return ' '
			}
			return r
		}, line))
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	text := strings.Join(lines, "; ")
	return strings.ToValidUTF8(text[:min(len(text), maxOutput)], "")
}
