package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	parameters "podd/manifest/disk"
	"podd/reconcile/render"
	"podd/reconcile/volume/disk"
	"podd/reconcile/volume/mounts"
	"podd/reconcile/volume/selinux"
)

const (
	iscsiPlugin = "kubernetes.io~iscsi"
	fcPlugin    = "kubernetes.io~fc"
)

// iscsiVolume implements volumeType for volumes of type iscsi.
type iscsiVolume struct{}

func (iscsiVolume) matches(v *v1.Volume) bool { return v.ISCSI != nil }

func (iscsiVolume) check(p *podDir, v *v1.Volume) (string, error) {
	return p.checkDisk(v, inlineSource(v))
}

func (iscsiVolume) prepare(ctx context.Context, p *podDir, v *v1.Volume) (string, error) {
	return p.prepareDisk(ctx, v, inlineSource(v))
}

// fcVolume implements volumeType for volumes of type fc.
type fcVolume struct{}

func (fcVolume) matches(v *v1.Volume) bool { return v.FC != nil }

func (fcVolume) check(p *podDir, v *v1.Volume) (string, error) {
	return p.checkDisk(v, inlineSource(v))
}

func (fcVolume) prepare(ctx context.Context, p *podDir, v *v1.Volume) (string, error) {
	return p.prepareDisk(ctx, v, inlineSource(v))
}

// A diskSource is the source of a volume of type iscsi or fc, from a pod or a PersistentVolume. Either
// iscsi or fc is set.
type diskSource struct {
	iscsi        *v1.ISCSIPersistentVolumeSource
	fc           *v1.FCVolumeSource
	readOnly     bool
	block        bool
	mountOptions []string
	// accessModes are those of the PersistentVolume; nil for a volume in a pod.
	accessModes []v1.PersistentVolumeAccessMode
}

func inlineSource(v *v1.Volume) diskSource {
	if s := v.ISCSI; s != nil {
		return diskSource{iscsi: parameters.PersistentSource(s), readOnly: s.ReadOnly}
	}
	return diskSource{fc: v.FC, readOnly: v.FC.ReadOnly}
}

// isDisk reports whether a PersistentVolume has the source iscsi or fc.
func isDisk(pv *v1.PersistentVolume) bool { return pv.Spec.ISCSI != nil || pv.Spec.FC != nil }

// newDiskSource returns the source of a PersistentVolume for which isDisk is true. If readOnly is true,
// the disk is used read-only.
func newDiskSource(pv *v1.PersistentVolume, readOnly bool) diskSource {
	s := diskSource{iscsi: pv.Spec.ISCSI, fc: pv.Spec.FC, readOnly: readOnly, block: isBlock(pv.Spec.VolumeMode), mountOptions: pv.Spec.MountOptions, accessModes: pv.Spec.AccessModes}
	if s.iscsi != nil {
		s.readOnly = readOnly || s.iscsi.ReadOnly
	} else {
		s.readOnly = readOnly || s.fc.ReadOnly
	}
	return s
}

// plugin returns the name of the directory that contains such volumes in a pod's directory, as in
// the kubelet.
func (s diskSource) plugin() string {
	if s.iscsi != nil {
		return iscsiPlugin
	}
	return fcPlugin
}

// parse validates the parameters, because an API server does not validate all of them, and returns
// the volume.
func (s diskSource) parse() (disk.Volume, error) {
	v := disk.Volume{Block: s.block, ReadOnly: s.readOnly, MountOptions: s.mountOptions}
	var errs field.ErrorList
	if s.iscsi != nil {
		d, invalid := parameters.NewISCSI(s.iscsi, field.NewPath("iscsi"))
		v.ISCSI, v.FSType, errs = &d, s.iscsi.FSType, invalid
		v.UniqueName = parameters.UniqueISCSIName(s.iscsi)
	} else {
		d, invalid := parameters.NewFC(s.fc, field.NewPath("fc"))
		v.FC, v.FSType, errs = &d, s.fc.FSType, invalid
		v.UniqueName = parameters.UniqueFCName(s.fc)
	}
	return v, append(errs, parameters.ValidateMountOptions(s.mountOptions, field.NewPath("mountOptions"))...).ToAggregate()
}

// labelVolume returns the parameters of the decision about the SELinux label. name is the name of the
// volume in the pod.
func (s diskSource) labelVolume(name string) selinux.Volume {
	return selinux.Volume{Name: name, AccessModes: s.accessModes, IsExcluded: s.block || hasOwnLabel(s.mountOptions)}
}

// checkDisk checks the parameters of a disk and the programs of the host. It returns the error that
// prepareDisk would return, but does not access the disk.
func (p *podDir) checkDisk(v *v1.Volume, s diskSource) (path string, err error) {
	d, err := s.parse()
	if err != nil {
		return "", err
	}
	if _, err := p.decideLabel(s.labelVolume(v.Name)); err != nil {
		return "", err
	}
	return "", d.Check(func(p disk.Program) error {
		_, err := findProgram("", p.Name, p.Remedy)
		return err
	})
}

// DisksInUse returns the names that iSCSI and Fibre Channel volumes on this node have in the status of a
// Node; see disk.Manager.VolumesInUse.
func (d Dir) DisksInUse() ([]v1.UniqueVolumeName, error) { return d.disks().VolumesInUse() }

// disks returns the manager of the disks that are attached for the pods in Root.
func (d Dir) disks() disk.Manager {
	return disk.Manager{
		Root: filepath.Join(filepath.Dir(d.Root), "disks"), Pods: d.Root,
		Host: disk.Host{
			Sys: "/sys", Dev: "/dev", ISCSI: []string{"/etc/iscsi", "/var/lib/iscsi"},
			Call: d.CallLimiter.do, Flush: disk.Flush,
			Run: func(ctx context.Context, limit time.Duration, p disk.Program, args ...string) (string, error) {
				path, err := findProgram("", p.Name, p.Remedy)
				if err != nil {
					return "", err
				}
				output, err := runProgram(ctx, limit, nil, path, args...)
				if errors.Is(err, errTimeout) {
					err = fmt.Errorf("%s was killed because it did not finish within %s; check that the target responds", p.Name, limit)
				}
				return output, err
			},
		},
	}
}

// prepareDisk attaches the disk of a volume and returns the path of its device, or mounts its filesystem
// in the directory of the pod and returns the path of the mount. If the filesystem is already mounted
// there, prepareDisk does not access it.
func (p *podDir) prepareDisk(ctx context.Context, v *v1.Volume, s diskSource) (string, error) {
	path := filepath.Join(p.path, volumesDir, s.plugin(), v.Name)
	if isMounted, err := p.isMounted(s.plugin(), v.Name); err != nil || isMounted {
		if isMounted && s.readOnly { // podd may have been killed before it made the mount read-only
			err = p.bindDisk("", s.plugin(), v.Name, true)
		}
		return path, err
	}
	d, err := s.parse()
	if err != nil {
		return "", err
	}
	if d.Secret, err = p.chapCredentials(v, s); err != nil {
		return "", err
	}
	links, err := p.openPluginDir(disk.LinksDir, privateMode)
	if err != nil {
		return "", err
	}
	defer links.Close()
	source := ""
	err = p.mountWithLabel(v, s.labelVolume(v.Name), func(label selinux.Mount) (err error) {
		d.SELinux = label
		source, err = p.root.disks().Attach(ctx, d, links, v.Name)
		return err
	})
	if err != nil || s.block {
		return source, err
	}
	if err := p.bindDisk(source, s.plugin(), v.Name, s.readOnly); err != nil || s.readOnly {
		return path, err
	}
	claims, err := p.root.openClaimLinks(p.pod.UID)
	if err != nil {
		return path, err
	}
	defer claims.Close()
	return path, p.setFSGroup(ctx, path, claims, v.Name)
}

// chapCredentials returns the CHAP credentials of a volume, or nil if the volume needs none.
func (p *podDir) chapCredentials(v *v1.Volume, s diskSource) (map[string][]byte, error) {
	if s.iscsi == nil || len(parameters.CHAPKeys(s.iscsi)) == 0 {
		return nil, nil
	}
	if p.content != nil {
		if secret := p.content.CHAPSecret(v); secret != nil {
			return secret.Data, nil
		}
	}
	return nil, fmt.Errorf("the Secret with the CHAP credentials %w", render.ErrMissing)
}

// bindDisk bind-mounts the filesystem at source as a volume of the pod, if the volume is not
// mounted yet.
func (p *podDir) bindDisk(source, plugin, name string, readOnly bool) error {
	dir, err := p.openPluginDir(plugin, dirMode)
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, err := dir.Mkdir(name, dirMode, -1); err != nil { // the mount hides the mount point and its mode
		return err
	}
	target := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
	isMounted, err := p.isMounted(plugin, name)
	if err == nil && !isMounted {
		err = unix.Mount(source, target, "", unix.MS_BIND, "")
	}
	if err == nil && readOnly {
		err = setReadOnly(target)
	}
	if err != nil {
		return fmt.Errorf("bind-mounting %s: %w", source, err)
	}
	return nil
}

// setReadOnly makes the mount at path read-only. It keeps the other flags of the mount, but not those
// for access times, which have no effect on a read-only mount.
func setReadOnly(path string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err
	}
	flags := uintptr(st.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC) // ST_ and MS_ have the same values
	return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, "")
}

// isMounted reports whether a filesystem is mounted at a volume of the pod, according to the mount
// table.
func (p *podDir) isMounted(plugin, name string) (bool, error) {
	rel := filepath.Join(string(p.pod.UID), volumesDir, plugin, name)
	mountTable, err := p.root.mountsBelow(rel)
	if err != nil {
		return false, fmt.Errorf("reading the mount table: %w", err)
	}
	return slices.ContainsFunc(mountTable, func(m mounts.Mount) bool { return m.Rel == rel }), nil
}
