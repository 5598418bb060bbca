package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/reconcile/volume/claim"
	"podd/runtime/safepath"
)

// Measured is the usage of a volume and of its file system.
type Measured struct {
	Name string
	// Claim is the name of the volume's claim; "" if there is none.
	Claim string
	// Own reports whether the volume counts as the pod's ephemeral storage.
	Own                                     bool
	Used                                    safepath.Usage
	Capacity, Available, Inodes, InodesFree uint64
	// Abnormal reports whether the CSI driver reports an abnormal condition; nil if it
	// reports no condition.
	Abnormal *bool
}

// maxMeasured is the maximum number of files that are measured per volume on demand, which
// takes about half a second.
const maxMeasured = 1 << 18

// Measure returns the usage of the volumes of a pod that podd manages, in the pod's order,
// and then that of CSI volumes according to their drivers. It does not measure host paths,
// nor volumes of servers, which may not respond. Volumes that do not exist and those in the
// error are omitted. The pod may be running.
func (d Dir) Measure(ctx context.Context, pod *v1.Pod) ([]Measured, error) {
	if err := checkUID(pod.UID); err != nil {
		return nil, err
	}
	var all []Measured
	var failed []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		root, at, claim := d.volumeDir(pod, v)
		if at == "" {
			continue
		}
		m, err := measured(ctx, root, at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("measuring volume %q of pod %s/%s: %w", v.Name, pod.Namespace, pod.Name, err))
			continue
		}
		m.Name, m.Claim = v.Name, claim
		m.Own = v.ConfigMap != nil || v.EmptyDir != nil && v.EmptyDir.Medium == v1.StorageMediumDefault
		all = append(all, m)
	}
	all, err := d.addCSI(ctx, all, pod)
	return all, errors.Join(append(failed, err)...)
}

// addCSI adds the statistics of CSI drivers.
func (d Dir) addCSI(ctx context.Context, all []Measured, pod *v1.Pod) ([]Measured, error) {
	if d.CSI == nil {
		return all, nil
	}
	stats, err := d.CSI.Stats(ctx, pod.UID)
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		s, ok := stats[v.Name]
		if !ok {
			continue
		}
		m := Measured{
			Name: v.Name, Capacity: s.Bytes.Total, Available: s.Bytes.Available, Inodes: s.Inodes.Total, InodesFree: s.Inodes.Available,
			Used: safepath.Usage{Bytes: int64(s.Bytes.Used), Inodes: int64(s.Inodes.Used)},
		}
		switch {
		case v.PersistentVolumeClaim != nil:
			m.Claim = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			m.Claim = pod.Name + "-" + v.Name
		}
		if s.Condition != nil {
			m.Abnormal = &s.Condition.Abnormal
		}
		all = append(all, m)
	}
	return all, err
}

// volumeDir returns the root and the relative path of a volume's directory, and the name of
// its claim. at is "" if podd has no directory for the volume.
func (d Dir) volumeDir(pod *v1.Pod, v *v1.Volume) (root, at, claimName string) {
	plugin := ""
	switch {
	case v.EmptyDir != nil:
		plugin = emptyDirPlugin
	case v.Ephemeral != nil:
		plugin, claimName = ephemeralPlugin, pod.Name+"-"+v.Name
	case v.PersistentVolumeClaim != nil && d.Claims != "":
		claimName = v.PersistentVolumeClaim.ClaimName
		at = filepath.Join(pod.Namespace, claimName)
		// A claim of this name may be that of a cluster, which podd does not measure.
		used, err := os.Readlink(filepath.Join(d.Root, string(pod.UID), claim.LinksDir, v.Name))
		if err != nil || used != at {
			return "", "", ""
		}
		return d.Claims, at, claimName
	}
	for _, w := range []podFiles{configMap, secret, downwardAPI, projected} {
		if w.serves(v) {
			plugin = w.plugin
		}
	}
	if plugin == "" {
		return "", "", ""
	}
	return d.Root, filepath.Join(string(pod.UID), volumesDir, plugin, v.Name), claimName
}

func measured(ctx context.Context, root, at string) (Measured, error) {
	base, err := safepath.Open(root)
	if err != nil {
		return Measured{}, err
	}
	defer base.Close()
	vol, err := base.Sub(at)
	if err != nil {
		return Measured{}, err
	}
	defer vol.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(vol.Fd(), &st); err != nil {
		return Measured{}, err
	}
	size := uint64(st.Bsize)
	m := Measured{Capacity: st.Blocks * size, Available: st.Bavail * size, Inodes: st.Files, InodesFree: st.Ffree}
	m.Used, err = vol.Usage(ctx, maxMeasured)
	return m, err
}
