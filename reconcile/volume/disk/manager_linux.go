package disk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/disk"
	"podd/reconcile/volume/selinux"
	"podd/runtime/safepath"
)

// LinksDir is the name of a directory in the volumes directory of a pod. It contains, for each volume
// on a disk, a link with the name of the disk. The pod uses the disk while the link exists.
const LinksDir = "podd~disk"

// A directory of an attached disk contains mountDir, and namesFile with the names that the disk's
// volumes have in the status of a Node, one a line.
const (
	mountDir  = "mount"
	namesFile = "volumes"
)

// A Manager attaches and detaches disks. All fields are required.
type Manager struct {
	// Root is the directory with the state of attached disks, and Pods is the directory of all pod
	// directories.
	Root, Pods string
	Host       Host
}

// A Volume is a volume of a pod on a disk. Either ISCSI or FC is set.
type Volume struct {
	ISCSI *disk.ISCSI
	FC    *disk.FC
	// UniqueName is the name that the volume has in the status of a Node; "" if there is none.
	UniqueName v1.UniqueVolumeName
	// Block reports whether the volume is the block device, and not a filesystem.
	Block bool
	// FSType is the type of the filesystem; "" means disk.DefaultFilesystem.
	FSType       string
	MountOptions []string
	ReadOnly     bool
	// SELinux is the label of the mount. It has no effect on a block device.
	SELinux selinux.Mount
	// Secret contains the CHAP credentials of an iSCSI disk by the names of iscsiadm's settings.
	Secret map[string][]byte
}

// A name identifies an attached disk: the directory of its target, and the name of the disk in it.
type name struct{ target, disk string }

func (n name) String() string { return n.target + "/" + n.disk }

var namePattern = regexp.MustCompile(`^((?:iscsi|fc)-[0-9a-f]{32})/(lun-\d{1,3}|disk)$`)

// parseName parses the target of a symbolic link. ok is false if the target is not valid.
func parseName(text string) (n name, ok bool) {
	parts := namePattern.FindStringSubmatch(text)
	if parts == nil {
		return name{}, false
	}
	return name{parts[1], parts[2]}, true
}

// name returns the name of the disk. Volumes of the same target have the same name if only their
// portals differ.
func (v Volume) name() name {
	switch {
	case v.ISCSI != nil:
		return name{targetID("iscsi", v.ISCSI.Target, v.ISCSI.Interface, v.ISCSI.Initiator), fmt.Sprintf("lun-%d", v.ISCSI.LUN)}
	case len(v.FC.Targets) > 0:
		return name{targetID("fc", v.FC.Targets, v.FC.LUN), fmt.Sprintf("lun-%d", v.FC.LUN)}
	}
	return name{targetID("fc", v.FC.WWIDs), "disk"}
}

// targetID returns the name of the directory of a target. The parts identify the target. They are
// hashed, because together they may be longer than the name of a directory can be.
func targetID(kind string, parts ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return fmt.Sprintf("%s-%x", kind, sum[:16])
}

// Attach attaches the disk of a volume for a pod, and mounts its filesystem. It returns the path of the
// mount, or the path of the device if v.Block is true. links is the open LinksDir of the pod, and volume
// is the name of the volume in the pod. If the disk is attached already, Attach only checks that it is
// usable. The caller must call Release later, even if Attach returns an error.
func (m Manager) Attach(ctx context.Context, v Volume, links *safepath.Dir, volume string) (path string, err error) {
	n := v.name()
	usedDisk, linkErr := links.Readlink(volume)
	if linkErr == nil && usedDisk != n.String() {
		return "", fmt.Errorf("the volume already uses the disk %s; remove the pod to use another disk", usedDisk)
	}
	t, err := m.lock(ctx, n.target)
	if err != nil {
		return "", err
	}
	defer t.unlock()
	if err := t.recordUse(n, v.UniqueName, links, volume, linkErr == nil); err != nil {
		return "", err
	}
	mountPoint := filepath.Join(t.dir, n.disk, mountDir)
	if !v.Block {
		isMounted, err := t.findUsableMount(ctx, n, mountPoint, v)
		if _, isConflict := errors.AsType[*selinux.Error](err); isConflict {
			// Without the link, the disk is detached after the last pod with the other label. With it,
			// pods that wait would keep the mount with this label.
			err = errors.Join(err, unix.Unlinkat(links.Fd(), volume, 0))
		}
		if isMounted || err != nil {
			return mountPoint, err
		}
	}
	devices, err := t.attach(ctx, v)
	if err != nil {
		return "", err
	}
	device, err := m.Host.selectDevice(ctx, devices, v.pathCount() > 1)
	if err != nil || v.Block {
		return device, err
	}
	if err := os.Mkdir(mountPoint, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return mountPoint, m.Host.mount(ctx, device, mountPoint, v)
}

// recordUse makes the link of a volume, unless hasLink is set, and the directory of its disk, and adds
// uniqueName to the namesFile. If the disk has too many names, recordUse makes no link, because the link
// would keep the disk and its names.
func (t *target) recordUse(n name, uniqueName v1.UniqueVolumeName, links *safepath.Dir, volume string, hasLink bool) error {
	names, isNew, err := t.addName(n.disk, uniqueName)
	if err != nil {
		return err
	}
	if !hasLink {
		if err := unix.Symlinkat(n.String(), links.Fd(), volume); err != nil {
			return fmt.Errorf("recording the use of the disk: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(t.dir, n.disk), dirMode); err != nil || !isNew {
		return err
	}
	return t.writeNames(n.disk, names)
}

// pathCount returns the number of paths over which the disk may be reachable.
func (v Volume) pathCount() int {
	if v.ISCSI != nil {
		return len(v.ISCSI.Portals)
	}
	return max(len(v.FC.Targets), len(v.FC.WWIDs))
}

// attach makes the disk of v appear on this node and returns the names of its devices, such as "sda".
// There is at least one.
func (t *target) attach(ctx context.Context, v Volume) ([]string, error) {
	if v.ISCSI != nil {
		return t.attachISCSI(ctx, v)
	}
	return t.attachFC(ctx, v)
}

// Release ends the use of all disks by a pod. It detaches the disks that no other pod uses. If
// Release returns an error, the caller must call Release again, to retry the disks that failed. The
// caller must first remove the mounts in the directory of the pod.
func (m Manager) Release(ctx context.Context, pod types.UID) error {
	dir := filepath.Join(m.Pods, string(pod), "volumes", LinksDir)
	volumes, err := safepath.Names(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, volume := range volumes {
		link := filepath.Join(dir, volume)
		text, err := os.Readlink(link)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		n, ok := parseName(text)
		if !ok {
			errs = append(errs, fmt.Errorf("the link %s does not name a disk; detach the disk of volume %q, and remove the link", link, volume))
			continue
		}
		if err := m.release(ctx, n, pod); err != nil {
			errs = append(errs, fmt.Errorf("detaching the disk of volume %q: %w", volume, err))
			continue
		}
		errs = append(errs, os.Remove(link))
	}
	return errors.Join(errs...)
}

// release detaches a disk, if no pod other than pod uses it.
func (m Manager) release(ctx context.Context, n name, pod types.UID) error {
	t, err := m.lock(ctx, n.target)
	if err != nil {
		return err
	}
	defer t.unlock()
	users, err := m.users(n)
	if err != nil {
		return err
	}
	for _, user := range users {
		if user != pod {
			return nil
		}
	}
	return t.detach(ctx, n.disk)
}

// users returns the pods that use a disk, each once.
func (m Manager) users(n name) ([]types.UID, error) {
	pods, err := safepath.Names(m.Pods)
	if err != nil {
		return nil, err
	}
	var uids []types.UID
	for _, pod := range pods {
		dir := filepath.Join(m.Pods, pod, "volumes", LinksDir)
		volumes, err := safepath.Names(dir)
		if err != nil {
			return nil, err
		}
		for _, volume := range volumes {
			if text, err := os.Readlink(filepath.Join(dir, volume)); err == nil && text == n.String() {
				uids = append(uids, types.UID(pod))
				break
			}
		}
	}
	return uids, nil
}

// detach unmounts a disk and removes its devices. After the last disk of a target, it also logs out of
// the target. It may be called again after an error.
func (t *target) detach(ctx context.Context, disk string) error {
	r, err := t.load()
	if err != nil {
		return err
	}
	mountPoint := filepath.Join(t.dir, disk, mountDir)
	if err := t.m.Host.unmount(ctx, mountPoint); err != nil {
		return err
	}
	devices, err := t.devices(r, disk)
	if err != nil {
		return err
	}
	if err := t.m.Host.removeDevices(ctx, devices); err != nil {
		return err
	}
	dir := filepath.Join(t.dir, disk)
	if err := removeAll(mountPoint, filepath.Join(dir, namesFile+".new"), filepath.Join(dir, namesFile), dir); err != nil {
		return err
	}
	disks, err := t.disks()
	if err != nil || len(disks) > 0 {
		return err
	}
	if r.ISCSI != nil {
		if err := t.logout(ctx, r.ISCSI); err != nil {
			return err
		}
	}
	return removeAll(filepath.Join(t.dir, recordName+".new"), filepath.Join(t.dir, recordName), t.dir)
}

// devices returns the names of a disk's devices that podd must delete.
func (t *target) devices(r record, disk string) ([]string, error) {
	switch {
	case r.ISCSI != nil:
		return t.m.Host.ownedDevices(r.ISCSI, disk)
	case r.FC != nil:
		return t.m.Host.fcDevices(*r.FC)
	}
	return nil, nil // podd was killed before it attached the disk
}

// disks returns the names of the attached disks of a target.
func (t *target) disks() ([]string, error) {
	entries, err := safepath.Names(t.dir)
	var disks []string
	for _, entry := range entries {
		if _, ok := parseName(filepath.Base(t.dir) + "/" + entry); ok {
			disks = append(disks, entry)
		}
	}
	return disks, err
}

// removeAll removes files and empty directories, and ignores those that do not exist.
func removeAll(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// lockRetryInterval is the interval between attempts to lock the directory of a target.
const lockRetryInterval = 20 * time.Millisecond
