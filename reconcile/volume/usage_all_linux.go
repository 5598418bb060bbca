package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/manifest/refs"
	"podd/reconcile/volume/claim"
	"podd/reconcile/volume/disk"
	"podd/reconcile/volume/mounts"
	"podd/runtime/safepath"
)

// A VolumeUsage contains the disk usage of a volume and of its file system.
type VolumeUsage struct {
	Name string // name of the volume in the pod
	// Claim is the name of the volume's claim; "" if there is none.
	Claim string
	// CountsAsEphemeral reports whether the volume counts towards the pod's ephemeral storage.
	CountsAsEphemeral bool
	Used              safepath.Usage
	// These fields describe the file system: its size and available space in bytes, its total
	// number of inodes, and the number of free inodes.
	Capacity, Available, Inodes, InodesFree uint64
	// Source is the source of the usage for metrics, as in the kubelet: "du", "statfs", or the name
	// of the CSI driver. Took is the duration of the measurement.
	Source string
	Took   time.Duration
}

// maxMeasuredFiles is the maximum number of files that Measure counts in a volume. Counting this
// number of files takes about half a second. If a volume has more files, Used.Excess is set.
const maxMeasuredFiles = 1 << 18

// Measure returns the usage of the pod's volumes that podd manages, in the order of the pod's spec.
// It then appends the usage of filesystems on iSCSI and Fibre Channel disks, and that of CSI volumes as
// their drivers report it. It measures neither block devices and host paths, nor NFS volumes, because
// an NFS server may not respond. The result omits volumes that do not exist, and volumes that could
// not be measured. The error joins the errors of volumes that could not be measured. The pod may be
// running.
func (d Dir) Measure(ctx context.Context, pod *v1.Pod) ([]VolumeUsage, error) {
	if err := checkUID(pod.UID); err != nil {
		return nil, err
	}
	var usages []VolumeUsage
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		root, rel := d.volumeDir(pod, v)
		if rel == "" {
			continue
		}
		began := time.Now()
		m, err := measureDir(ctx, root, rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("measuring volume %q of pod %s/%s: %w", v.Name, pod.Namespace, pod.Name, err))
			continue
		}
		m.Name, m.Claim, m.Source, m.Took = v.Name, claimOf(pod, v), "du", time.Since(began)
		m.CountsAsEphemeral = v.ConfigMap != nil || v.EmptyDir != nil && v.EmptyDir.Medium == v1.StorageMediumDefault
		usages = append(usages, m)
	}
	usages, diskErr := d.addDiskUsage(ctx, usages, pod)
	usages, csiErr := d.addCSIUsage(ctx, usages, pod)
	return usages, errors.Join(append(errs, diskErr, csiErr)...)
}

// addDiskUsage appends the usage of the filesystems of the pod's iSCSI and Fibre Channel disks to usages
// and returns the list.
func (d Dir) addDiskUsage(ctx context.Context, usages []VolumeUsage, pod *v1.Pod) ([]VolumeUsage, error) {
	links, err := safepath.Names(filepath.Join(d.Root, string(pod.UID), volumesDir, disk.LinksDir))
	if err != nil || len(links) == 0 {
		return usages, err
	}
	mountTable, err := d.mountsBelow(filepath.Join(string(pod.UID), volumesDir))
	if err != nil {
		return usages, fmt.Errorf("reading the mount table: %w", err)
	}
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !slices.Contains(links, v.Name) {
			continue
		}
		for _, plugin := range []string{iscsiPlugin, fcPlugin} {
			rel := filepath.Join(string(pod.UID), volumesDir, plugin, v.Name)
			if !slices.ContainsFunc(mountTable, func(m mounts.Mount) bool { return m.Rel == rel }) {
				continue
			}
			startTime := time.Now()
			m, err := d.measureDisk(ctx, rel)
			if err != nil {
				errs = append(errs, fmt.Errorf("measuring volume %q of pod %s/%s: %w", v.Name, pod.Namespace, pod.Name, err))
				continue
			}
			m.Name, m.Claim, m.Source, m.Took = v.Name, claimOf(pod, v), "statfs", time.Since(startTime)
			usages = append(usages, m)
		}
	}
	return usages, errors.Join(errs...)
}

// diskTimeout is the maximum duration of the measurement of a disk, whose target may not respond.
const diskTimeout = 10 * time.Second

// measureDisk returns the usage of the filesystem that is mounted at rel in Root, as the filesystem
// reports it.
func (d Dir) measureDisk(ctx context.Context, rel string) (VolumeUsage, error) {
	result := make(chan VolumeUsage, 1)
	err := d.CallLimiter.do(ctx, diskTimeout, "measuring "+rel, func(context.Context) error {
		base, err := safepath.Open(d.Root)
		if err != nil {
			return err
		}
		defer base.Close()
		vol, err := base.Sub(rel)
		if err != nil {
			return err
		}
		defer vol.Close()
		m, err := fileSystemUsage(vol)
		result <- m
		return err
	})
	if err != nil {
		return VolumeUsage{}, err
	}
	return <-result, nil
}

// fileSystemUsage returns the usage of the file system that contains dir.
func fileSystemUsage(dir *safepath.Dir) (VolumeUsage, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(dir.Fd(), &st); err != nil {
		return VolumeUsage{}, err
	}
	size := uint64(st.Bsize)
	return VolumeUsage{
		Capacity: st.Blocks * size, Available: st.Bavail * size, Inodes: st.Files, InodesFree: st.Ffree,
		Used: safepath.Usage{Bytes: int64((st.Blocks - st.Bfree) * size), Inodes: int64(st.Files - st.Ffree)},
	}, nil
}

// claimOf returns the name of the claim of a volume; "" if there is none.
func claimOf(pod *v1.Pod, v *v1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return refs.EphemeralClaimName(pod, v.Name)
	}
	return ""
}

// addCSIUsage appends the usage of the pod's CSI volumes to usages and returns the list.
func (d Dir) addCSIUsage(ctx context.Context, usages []VolumeUsage, pod *v1.Pod) ([]VolumeUsage, error) {
	if d.CSI == nil {
		return usages, nil
	}
	stats, err := d.CSI.Stats(ctx, pod.UID)
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		s, ok := stats[v.Name]
		if !ok {
			continue
		}
		usages = append(usages, VolumeUsage{
			Name: v.Name, Claim: claimOf(pod, v), Source: s.Driver, Took: s.Took, Capacity: s.Bytes.Total, Available: s.Bytes.Available, Inodes: s.Inodes.Total, InodesFree: s.Inodes.Available,
			Used: safepath.Usage{Bytes: int64(s.Bytes.Used), Inodes: int64(s.Inodes.Used)},
		})
	}
	return usages, err
}

// volumeDir returns the directory of a volume. rel is the path of the directory relative to root;
// "" if podd has no directory for the volume.
func (d Dir) volumeDir(pod *v1.Pod, v *v1.Volume) (root, rel string) {
	plugin := ""
	switch {
	case v.EmptyDir != nil:
		plugin = emptyDirPlugin
	case v.Ephemeral != nil:
		plugin = ephemeralPlugin
	case v.PersistentVolumeClaim != nil && d.ClaimsDir != "":
		rel = filepath.Join(pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		// Without a link in claim.LinksDir, the claim belongs to a cluster, and podd does not
		// measure its volume.
		claimPath, err := os.Readlink(filepath.Join(d.Root, string(pod.UID), claim.LinksDir, v.Name))
		if err != nil || claimPath != rel {
			return "", ""
		}
		return d.ClaimsDir, rel
	}
	for _, w := range []apiVolume{configMapType, secretType, downwardAPIType, projectedType} {
		if w.matches(v) {
			plugin = w.plugin
		}
	}
	if plugin == "" {
		return "", ""
	}
	return d.Root, filepath.Join(string(pod.UID), volumesDir, plugin, v.Name)
}

// measureDir returns the usage of the directory rel in root, and of its file system.
func measureDir(ctx context.Context, root, rel string) (VolumeUsage, error) {
	base, err := safepath.Open(root)
	if err != nil {
		return VolumeUsage{}, err
	}
	defer base.Close()
	vol, err := base.Sub(rel)
	if err != nil {
		return VolumeUsage{}, err
	}
	defer vol.Close()
	m, err := fileSystemUsage(vol)
	if err != nil {
		return VolumeUsage{}, err
	}
	m.Used, err = vol.Usage(ctx, maxMeasuredFiles)
	return m, err
}
