package defaults

import (
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"

	"podd/manifest/disk"
)

func setVolumeDefaults(v *v1.Volume) {
	source := &v.VolumeSource
	if *source == (v1.VolumeSource{}) {
		source.EmptyDir = &v1.EmptyDirVolumeSource{}
	}
	// Several of the following conditions can be true, because a volume with several sources is
	// refused only later.
	if source.Image != nil {
		setIfZero(&source.Image.PullPolicy, defaultPullPolicy(source.Image.Reference))
	}
	if source.Ephemeral != nil && source.Ephemeral.VolumeClaimTemplate != nil {
		setClaimSpecDefaults(&source.Ephemeral.VolumeClaimTemplate.Spec)
	}
	switch {
	case source.HostPath != nil:
		setIfNil(&source.HostPath.Type, v1.HostPathUnset)
	case source.Secret != nil:
		setIfNil(&source.Secret.DefaultMode, v1.SecretVolumeSourceDefaultMode)
	case source.ConfigMap != nil:
		setIfNil(&source.ConfigMap.DefaultMode, v1.ConfigMapVolumeSourceDefaultMode)
	case source.DownwardAPI != nil:
		setIfNil(&source.DownwardAPI.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
		setDownwardDefaults(source.DownwardAPI.Items)
	case source.Projected != nil:
		setProjectedDefaults(source.Projected)
	default:
		setRemoteDefaults(source)
	}
}

func setDownwardDefaults(files []v1.DownwardAPIVolumeFile) {
	for i := range files {
		setFieldRefDefaults(files[i].FieldRef)
	}
}

func setProjectedDefaults(p *v1.ProjectedVolumeSource) {
	setIfNil(&p.DefaultMode, v1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if p.Sources[i].DownwardAPI != nil {
			setDownwardDefaults(p.Sources[i].DownwardAPI.Items)
		}
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			setIfNil(&token.ExpirationSeconds, 3600)
		}
	}
}

// setRemoteDefaults sets the defaults of network volumes and cloud disks.
func setRemoteDefaults(source *v1.VolumeSource) {
	switch {
	case source.ISCSI != nil:
		setIfZero(&source.ISCSI.ISCSIInterface, disk.DefaultInterface)
	case source.RBD != nil:
		setIfZero(&source.RBD.RBDPool, "rbd")
		setIfZero(&source.RBD.RadosUser, "admin")
		setIfZero(&source.RBD.Keyring, "/etc/ceph/keyring")
	case source.AzureDisk != nil:
		setIfNil(&source.AzureDisk.CachingMode, v1.AzureDataDiskCachingReadWrite)
		setIfNil(&source.AzureDisk.FSType, "ext4")
		setIfNil(&source.AzureDisk.ReadOnly, false)
		setIfNil(&source.AzureDisk.Kind, v1.AzureSharedBlobDisk)
	case source.ScaleIO != nil:
		setIfZero(&source.ScaleIO.StorageMode, "ThinProvisioned")
		setIfZero(&source.ScaleIO.FSType, "xfs")
	}
}

func setClaimSpecDefaults(spec *v1.PersistentVolumeClaimSpec) {
	setIfNil(&spec.VolumeMode, v1.PersistentVolumeFilesystem)
	roundUp(spec.Resources.Limits)
	roundUp(spec.Resources.Requests)
}

// PersistentVolume sets the defaults of a PersistentVolume.
func PersistentVolume(pv *v1.PersistentVolume) {
	setIfNil(&pv.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
	if h := pv.Spec.HostPath; h != nil {
		setIfNil(&h.Type, v1.HostPathUnset)
	}
	if s := pv.Spec.ISCSI; s != nil {
		setIfZero(&s.ISCSIInterface, disk.DefaultInterface)
	}
	roundUp(pv.Spec.Capacity)
}

// Claim sets the defaults of a PersistentVolumeClaim, and its phase to Pending.
func Claim(c *v1.PersistentVolumeClaim) {
	setClaimSpecDefaults(&c.Spec)
	c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending}
}

// CSIDriver sets the defaults of a CSIDriver.
func CSIDriver(c *storage.CSIDriver) {
	s := &c.Spec
	setIfNil(&s.AttachRequired, true)
	setIfNil(&s.PodInfoOnMount, false)
	setIfNil(&s.StorageCapacity, false)
	setIfNil(&s.FSGroupPolicy, storage.ReadWriteOnceWithFSTypeFSGroupPolicy)
	setIfNil(&s.RequiresRepublish, false)
	setIfNil(&s.SELinuxMount, false)
	setIfNil(&s.PreventPodSchedulingIfMissing, false)
	if len(s.VolumeLifecycleModes) == 0 {
		s.VolumeLifecycleModes = []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent}
	}
}
