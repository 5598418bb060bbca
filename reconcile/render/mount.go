package render

import (
	"errors"
	"fmt"
	"path"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/manifest/intree"
	"podd/runtime"
)

const etcHosts = "/etc/hosts"

// mounts returns the mounts of a container: first deviceMounts, which are the mounts of its
// devices, then its volumeMounts in order, then /etc/hosts, unless a volume is mounted there, and
// last the file for the termination message.
func mounts(in *ContainerInput, deviceMounts []*cri.Mount) ([]*cri.Mount, error) {
	isLabelled, hasOwnHosts := map[string]bool{}, false
	for i := range in.Container.VolumeMounts {
		m := &in.Container.VolumeMounts[i]
		mount, err := volumeMount(in, i)
		if err != nil {
			return nil, mountError(in.Container, m, err)
		}
		mount.SelinuxRelabel = in.Node.SELinuxEnabled && !isLabelled[m.Name] && mustRelabel(in, findVolume(in, m.Name))
		isLabelled[m.Name] = true
		hasOwnHosts = hasOwnHosts || m.MountPath == etcHosts
		deviceMounts = append(deviceMounts, mount)
	}
	if in.HostsFile != "" && !hasOwnHosts {
		deviceMounts = append(deviceMounts, &cri.Mount{
			ContainerPath: etcHosts, HostPath: in.HostsFile, SelinuxRelabel: in.Node.SELinuxEnabled,
		})
	}
	if in.TerminationLog != "" && in.Container.TerminationMessagePath != "" {
		deviceMounts = append(deviceMounts, &cri.Mount{
			ContainerPath:  makeAbsolute(in.Container.TerminationMessagePath),
			HostPath:       in.TerminationLog,
			SelinuxRelabel: in.Node.SELinuxEnabled,
		})
	}
	if manifest.HasUserNamespace(&in.Pod.Object.Spec) {
		for _, m := range deviceMounts {
			// With these ID mappings, files on the mount have the same owners as in a pod without a
			// user namespace.
			m.UidMappings, m.GidMappings = idMappings(in.UserIDs), idMappings(in.UserIDs)
		}
	}
	return deviceMounts, nil
}

// volumeMount returns the mount for the volumeMount with index i.
func volumeMount(in *ContainerInput, i int) (*cri.Mount, error) {
	m := &in.Container.VolumeMounts[i]
	if v := findVolume(in, m.Name); v.Image != nil {
		return imageMount(in, m, v.Image)
	}
	host, ok := in.Volumes[m.Name]
	if m.SubPath != "" || m.SubPathExpr != "" {
		host, ok = in.SubPaths[i]
	}
	if !ok || host == "" {
		return nil, fmt.Errorf("the volume is not ready")
	}
	propagation, err := criPropagation(m.MountPropagation)
	if err != nil {
		return nil, err
	}
	recursive, err := isRecursiveReadOnly(m, in.Node.Handler(in.Pod))
	if err != nil {
		return nil, err
	}
	return &cri.Mount{
		ContainerPath:     makeAbsolute(m.MountPath),
		HostPath:          host,
		Readonly:          m.ReadOnly || isReadOnly(in, findVolume(in, m.Name)),
		RecursiveReadOnly: recursive,
		Propagation:       propagation,
	}, nil
}

// makeAbsolute returns p as an absolute path. A relative path is relative to the root directory.
func makeAbsolute(p string) string {
	if path.IsAbs(p) {
		return p
	}
	return path.Join("/", p)
}

func criPropagation(mode *v1.MountPropagationMode) (cri.MountPropagation, error) {
	if mode == nil {
		return cri.MountPropagation_PROPAGATION_PRIVATE, nil
	}
	switch *mode {
	case v1.MountPropagationNone:
		return cri.MountPropagation_PROPAGATION_PRIVATE, nil
	case v1.MountPropagationHostToContainer:
		return cri.MountPropagation_PROPAGATION_HOST_TO_CONTAINER, nil
	case v1.MountPropagationBidirectional:
		return cri.MountPropagation_PROPAGATION_BIDIRECTIONAL, nil
	}
	return 0, fmt.Errorf("mountPropagation: %q is not one of None, HostToContainer, Bidirectional", *mode)
}

// isRecursiveReadOnly reports whether all mounts below the volumeMount m are read-only, too. It
// returns an error if m requires recursive read-only mounts and the runtime does not support them.
func isRecursiveReadOnly(m *v1.VolumeMount, handler runtime.Handler) (bool, error) {
	if m.RecursiveReadOnly == nil {
		return false, nil
	}
	switch isSupported := handler.RecursiveReadOnlyMounts; *m.RecursiveReadOnly {
	case v1.RecursiveReadOnlyDisabled:
		return false, nil
	case v1.RecursiveReadOnlyIfPossible:
		return isSupported, nil
	default:
		if !isSupported {
			return false, errors.New("recursiveReadOnly: the runtime does not support it; use IfPossible, or a newer runtime and kernel")
		}
		return true, nil
	}
}

// CheckMounts returns an error if this node cannot provide a mount of a pod, so that retries would
// fail, too.
func CheckMounts(p *manifest.Pod, n Node) error {
	for _, list := range [][]v1.Container{p.Object.Spec.InitContainers, p.Object.Spec.Containers} {
		for i := range list {
			for j := range list[i].VolumeMounts {
				m := &list[i].VolumeMounts[j]
				_, err := isRecursiveReadOnly(m, n.Handler(p))
				if err == nil && findVolume(&ContainerInput{Pod: p}, m.Name).Image != nil {
					err = n.ImageVolumeSupport.check(m)
				}
				if err != nil {
					return mountError(&list[i], m, err)
				}
			}
		}
	}
	return nil
}

func findVolume(in *ContainerInput, name string) *v1.Volume {
	for i := range in.Pod.Object.Spec.Volumes {
		if v := &in.Pod.Object.Spec.Volumes[i]; v.Name == name {
			return v
		}
	}
	return &v1.Volume{}
}

// mustRelabel reports whether the runtime must relabel the files of a volume on a node with SELinux.
// These are the files that podd created, and the files in CSI volumes and on iSCSI and Fibre Channel disks,
// as in the kubelet. The files in a mount that is read-only or has one label for all files keep their label.
func mustRelabel(in *ContainerInput, v *v1.Volume) bool {
	if name := ClaimName(in.Pod, v); name != "" {
		c := in.Refs.Claim(name)
		if c == nil || c.Volume == nil {
			return c != nil
		}
		s := &c.Volume.Spec
		return (s.ISCSI != nil || s.FC != nil || s.CSI != nil) && canRelabel(in, v)
	}
	if v.ISCSI != nil || v.FC != nil || v.CSI != nil || intree.IsInline(v) {
		return canRelabel(in, v)
	}
	return v.EmptyDir != nil || v.Ephemeral != nil || isProjected(&v.VolumeSource)
}

func canRelabel(in *ContainerInput, v *v1.Volume) bool {
	return in.Relabelable[v.Name] && !isReadOnly(in, v)
}

// isReadOnly reports whether the volume is read-only regardless of its mounts.
func isReadOnly(in *ContainerInput, v *v1.Volume) bool {
	if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly {
		return true
	}
	if v.CSI != nil && v.CSI.ReadOnly != nil && *v.CSI.ReadOnly || v.ISCSI != nil && v.ISCSI.ReadOnly || v.FC != nil && v.FC.ReadOnly {
		return true
	}
	nfs := v.NFS
	if name := ClaimName(in.Pod, v); name != "" {
		if c := in.Refs.Claim(name); c != nil && c.Volume != nil {
			nfs = c.Volume.Spec.NFS
			if s := c.Volume.Spec.ISCSI; s != nil && s.ReadOnly {
				return true
			}
			if s := c.Volume.Spec.FC; s != nil && s.ReadOnly {
				return true
			}
			if s := c.Volume.Spec.CSI; s != nil && s.ReadOnly && c.Owner != "" { // in a cluster, only attaching depends on this field
				return true
			}
		}
	}
	return isProjected(&v.VolumeSource) || nfs != nil && nfs.ReadOnly
}

func isProjected(v *v1.VolumeSource) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil
}
