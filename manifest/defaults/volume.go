package defaults

import v1 "k8s.io/api/core/v1"

func setVolumeDefaults(v *v1.Volume) {
	source := &v.VolumeSource
	if *source == (v1.VolumeSource{}) {
		source.EmptyDir = &v1.EmptyDirVolumeSource{}
	}
	// A volume with several sources is refused later.
	if source.Image != nil {
		orElse(&source.Image.PullPolicy, pullPolicy(source.Image.Reference))
	}
	if source.Ephemeral != nil && source.Ephemeral.VolumeClaimTemplate != nil {
		setClaimSpecDefaults(&source.Ephemeral.VolumeClaimTemplate.Spec)
	}
	switch {
	case source.HostPath != nil:
		fill(&source.HostPath.Type, v1.HostPathUnset)
	case source.Secret != nil:
		fill(&source.Secret.DefaultMode, v1.SecretVolumeSourceDefaultMode)
	case source.ConfigMap != nil:
		fill(&source.ConfigMap.DefaultMode, v1.ConfigMapVolumeSourceDefaultMode)
	case source.DownwardAPI != nil:
		fill(&source.DownwardAPI.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
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
	fill(&p.DefaultMode, v1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if p.Sources[i].DownwardAPI != nil {
			setDownwardDefaults(p.Sources[i].DownwardAPI.Items)
		}
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			fill(&token.ExpirationSeconds, 3600)
		}
	}
}

// setRemoteDefaults sets the defaults of network volumes and cloud disks.
func setRemoteDefaults(source *v1.VolumeSource) {
	switch {
	case source.ISCSI != nil:
		orElse(&source.ISCSI.ISCSIInterface, "default")
	case source.RBD != nil:
		orElse(&source.RBD.RBDPool, "rbd")
		orElse(&source.RBD.RadosUser, "admin")
		orElse(&source.RBD.Keyring, "/etc/ceph/keyring")
	case source.AzureDisk != nil:
		fill(&source.AzureDisk.CachingMode, v1.AzureDataDiskCachingReadWrite)
		fill(&source.AzureDisk.FSType, "ext4")
		fill(&source.AzureDisk.ReadOnly, false)
		fill(&source.AzureDisk.Kind, v1.AzureSharedBlobDisk)
	case source.ScaleIO != nil:
		orElse(&source.ScaleIO.StorageMode, "ThinProvisioned")
		orElse(&source.ScaleIO.FSType, "xfs")
	}
}

func setClaimSpecDefaults(spec *v1.PersistentVolumeClaimSpec) {
	fill(&spec.VolumeMode, v1.PersistentVolumeFilesystem)
	roundUp(spec.Resources.Limits)
	roundUp(spec.Resources.Requests)
}

// PersistentVolume sets the defaults of a PersistentVolume.
func PersistentVolume(pv *v1.PersistentVolume) {
	fill(&pv.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
	if h := pv.Spec.HostPath; h != nil {
		fill(&h.Type, v1.HostPathUnset)
	}
	roundUp(pv.Spec.Capacity)
}

// Claim sets the defaults of a PersistentVolumeClaim, which becomes pending.
func Claim(c *v1.PersistentVolumeClaim) {
	setClaimSpecDefaults(&c.Spec)
	c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending}
}
