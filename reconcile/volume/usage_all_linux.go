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

	"podd/runtime/beneath"
)

// Measured is what one volume holds, and the file system it is in.
type Measured struct {
	Name string
	// Claim is the name of the claim that it is; "": none.
	Claim string
	// Own says that it counts as the pod's ephemeral storage.
	Own                                     bool
	Used                                    beneath.Usage
	Capacity, Available, Inodes, InodesFree uint64
	// Abnormal is whether its driver says that something is wrong with it; nil: it
	// says nothing.
	Abnormal *bool
}

// maxMeasured bounds the work of measuring one volume when somebody looks, about
// half a second.
const maxMeasured = 1 << 18

// Measure measures the volumes of a pod that podd keeps, in the pod's order, and
// asks the drivers of others: neither paths of the machine nor what a server has,
// which may be silent. One that is not there, or no more, is left out, as is one that
// the error tells of. A pod may run meanwhile.
func (d Dir) Measure(ctx context.Context, pod *v1.Pod) ([]Measured, error) {
	if err := checkUID(pod.UID); err != nil {
		return nil, err
	}
	var all []Measured
	var failed []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		root, at, claim := d.dirOf(pod, v)
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
	all, err := d.addDriven(ctx, all, pod)
	return all, errors.Join(append(failed, err)...)
}

// addDriven adds what CSI drivers say of their volumes.
func (d Dir) addDriven(ctx context.Context, all []Measured, pod *v1.Pod) ([]Measured, error) {
	if d.CSI == nil {
		return all, nil
	}
	told, err := d.CSI.Stats(ctx, pod.UID)
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		s, is := told[v.Name]
		if !is {
			continue
		}
		m := Measured{
			Name: v.Name, Capacity: s.Bytes.Total, Available: s.Bytes.Available, Inodes: s.Inodes.Total, InodesFree: s.Inodes.Available,
			Used: beneath.Usage{Bytes: int64(s.Bytes.Used), Inodes: int64(s.Inodes.Used)},
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

// dirOf is where a volume's directory is, below a root, with the name of its
// claim; "": podd keeps none.
func (d Dir) dirOf(pod *v1.Pod, v *v1.Volume) (root, at, claim string) {
	plugin := ""
	switch {
	case v.EmptyDir != nil:
		plugin = emptyDirPlugin
	case v.Ephemeral != nil:
		plugin, claim = ephemeralPlugin, pod.Name+"-"+v.Name
	case v.PersistentVolumeClaim != nil && d.Claims != "":
		claim = v.PersistentVolumeClaim.ClaimName
		at = filepath.Join(pod.Namespace, claim)
		// One of that name may be a cluster's, whose data is not podd's to measure.
		used, err := os.Readlink(filepath.Join(d.Root, string(pod.UID), volumesDir, claimPlugin, v.Name))
		if err != nil || used != at {
			return "", "", ""
		}
		return d.Claims, at, claim
	}
	for _, w := range []written{configMap, secret, downwardAPI, projected} {
		if w.serves(v) {
			plugin = w.plugin
		}
	}
	if plugin == "" {
		return "", "", ""
	}
	return d.Root, filepath.Join(string(pod.UID), volumesDir, plugin, v.Name), claim
}

func measured(ctx context.Context, root, at string) (Measured, error) {
	base, err := beneath.Open(root)
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
