// Package volumeplugin contains the kubelet's names of volume plugins, for metrics.
package volumeplugin

import v1 "k8s.io/api/core/v1"

// Local is the name of the plugin of volumes in a directory of the host.
const Local = "kubernetes.io/local-volume"

// CSI returns the name of the plugin for volumes of the CSI driver with this name.
func CSI(driver string) string { return "kubernetes.io/csi:" + driver }

// Name returns the name of the plugin for a volume. pv is the PersistentVolume to which the volume's
// claim is bound. If pv is nil, Name assumes that the data of the claim is in a directory of the host.
func Name(v *v1.Volume, pv *v1.PersistentVolume) string {
	switch s := &v.VolumeSource; {
	case s.EmptyDir != nil:
		return "kubernetes.io/empty-dir"
	case s.HostPath != nil:
		return "kubernetes.io/host-path"
	case s.ConfigMap != nil:
		return "kubernetes.io/configmap"
	case s.Secret != nil:
		return "kubernetes.io/secret"
	case s.Projected != nil:
		return "kubernetes.io/projected"
	case s.DownwardAPI != nil:
		return "kubernetes.io/downward-api"
	case s.NFS != nil:
		return "kubernetes.io/nfs"
	case s.ISCSI != nil:
		return "kubernetes.io/iscsi"
	case s.FC != nil:
		return "kubernetes.io/fc"
	case s.CSI != nil:
		return CSI(s.CSI.Driver)
	case s.Image != nil:
		return "kubernetes.io/image"
	}
	if pv == nil {
		return Local
	}
	switch s := &pv.Spec.PersistentVolumeSource; {
	case s.HostPath != nil:
		return "kubernetes.io/host-path"
	case s.NFS != nil:
		return "kubernetes.io/nfs"
	case s.ISCSI != nil:
		return "kubernetes.io/iscsi"
	case s.FC != nil:
		return "kubernetes.io/fc"
	case s.CSI != nil:
		return CSI(s.CSI.Driver)
	}
	return Local
}
