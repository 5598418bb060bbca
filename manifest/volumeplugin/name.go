// Package volumeplugin contains the kubelet's names of volume plugins, for metrics.
package volumeplugin

import v1 "k8s.io/api/core/v1"

// Local is the name of the plugin of volumes in a directory of the host.
const Local = "kubernetes.io/local-volume"

// CSI returns the name of the plugin of the volumes of a CSI driver.
func CSI(driver string) string { return "kubernetes.io/csi:" + driver }

// Name returns the name of the plugin of a volume. pv is the PersistentVolume of the volume's claim.
// It is nil if there is none or if it is unknown. In that case Name assumes that the claim has a
// directory of the host.
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
