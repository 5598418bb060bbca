package csi

import (
	"maps"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
)

// capability returns the capability of the volume for requests, as in the kubelet. The capability
// of a block device contains no mount flags.
func (v Volume) capability(can capabilities) *csi.VolumeCapability {
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: v.accessMode(can)}}
	if v.Block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		return c
	}
	mount := &csi.VolumeCapability_MountVolume{FsType: v.FSType, MountFlags: v.MountOptions}
	if g := v.fsGroup(); g != nil && can.supportsGroup() {
		mount.VolumeMountGroup = strconv.FormatInt(*g, 10)
	}
	c.AccessType = &csi.VolumeCapability_Mount{Mount: mount}
	return c
}

func (v Volume) accessMode(can capabilities) csi.VolumeCapability_AccessMode_Mode {
	switch v.AccessMode {
	case v1.ReadOnlyMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case v1.ReadWriteMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case v1.ReadWriteOncePod:
		if can.supportsMultiWriter() {
			return csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
		}
	default:
		if can.supportsMultiWriter() {
			return csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
		}
	}
	return csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
}

func (v Volume) fsGroup() *int64 {
	if s := v.Pod.Object.Spec.SecurityContext; s != nil {
		return s.FSGroup
	}
	return nil
}

// mustSetGroup reports whether podd, instead of the driver, must set the group of the volume's
// files to the pod's fsGroup.
func (v Volume) mustSetGroup(can capabilities) bool {
	if v.fsGroup() == nil || v.Block || v.ReadOnly || can.supportsGroup() {
		return false
	}
	policy := storage.ReadWriteOnceWithFSTypeFSGroupPolicy
	if v.DriverSpec != nil && v.DriverSpec.FSGroupPolicy != nil {
		policy = *v.DriverSpec.FSGroupPolicy
	}
	switch policy {
	case storage.NoneFSGroupPolicy:
		return false
	case storage.FileFSGroupPolicy:
		return true
	}
	once := !v.isPersistent() || v.AccessMode == v1.ReadWriteOnce || v.AccessMode == v1.ReadWriteOncePod
	return v.FSType != "" && once
}

func (v Volume) stageRequest(p volumePaths, can capabilities) *csi.NodeStageVolumeRequest {
	return &csi.NodeStageVolumeRequest{
		VolumeId: v.Handle, PublishContext: v.Published, StagingTargetPath: p.stagingPath,
		VolumeCapability: v.capability(can), Secrets: secretData(v.StageSecret), VolumeContext: v.Attributes,
	}
}

func (v Volume) publishRequest(p volumePaths, can capabilities) *csi.NodePublishVolumeRequest {
	r := &csi.NodePublishVolumeRequest{
		VolumeId: v.id().Handle, PublishContext: v.Published, TargetPath: p.target, Readonly: v.ReadOnly,
		VolumeCapability: v.capability(can), Secrets: secretData(v.PublishSecret), VolumeContext: v.volumeContext(),
	}
	if v.Block || v.isPersistent() && can.supportsStaging() {
		r.StagingTargetPath = p.stagingPath
	}
	return r
}

func (v Volume) expandRequest(p volumePaths, can capabilities) *csi.NodeExpandVolumeRequest {
	r := &csi.NodeExpandVolumeRequest{
		VolumeId: v.Handle, VolumePath: p.target, CapacityRange: &csi.CapacityRange{RequiredBytes: v.Capacity},
		VolumeCapability: v.capability(can), Secrets: secretData(v.ExpandSecret),
	}
	if mount := r.VolumeCapability.GetMount(); mount != nil {
		mount.VolumeMountGroup = ""
	}
	if can.supportsStaging() {
		r.StagingTargetPath = p.stagingPath
	}
	return r
}

// volumeContext returns the volume context of a publish request. It contains the attributes of the
// volume, the pod info if the driver requires it, and the pod's service account tokens.
func (v Volume) volumeContext() map[string]string {
	all := maps.Clone(v.Attributes)
	if all == nil {
		all = map[string]string{}
	}
	if v.DriverSpec != nil && v.DriverSpec.PodInfoOnMount != nil && *v.DriverSpec.PodInfoOnMount {
		all["csi.storage.k8s.io/pod.name"] = v.Pod.Object.Name
		all["csi.storage.k8s.io/pod.namespace"] = v.Pod.Object.Namespace
		all["csi.storage.k8s.io/pod.uid"] = string(v.Pod.UID)
		all["csi.storage.k8s.io/serviceAccount.name"] = v.Pod.Object.Spec.ServiceAccountName
		all["csi.storage.k8s.io/ephemeral"] = strconv.FormatBool(!v.isPersistent())
	}
	if v.Tokens != "" && !v.Block {
		all["csi.storage.k8s.io/serviceAccount.tokens"] = v.Tokens
	}
	return all
}

// secretData converts the data of a Secret to the type that requests use.
func secretData(data map[string][]byte) map[string]string {
	all := make(map[string]string, len(data))
	for key, value := range data {
		all[key] = string(value)
	}
	return all
}

// hasSameRequest reports whether the publish requests for v and o are equal.
func (v Volume) hasSameRequest(o Volume) bool {
	return maps.Equal(v.Published, o.Published) && maps.Equal(v.volumeContext(), o.volumeContext()) &&
		maps.Equal(secretData(v.PublishSecret), secretData(o.PublishSecret)) && slices.Equal(v.MountOptions, o.MountOptions)
}

func (v Volume) requiresRepublish() bool {
	return v.DriverSpec != nil && v.DriverSpec.RequiresRepublish != nil && *v.DriverSpec.RequiresRepublish
}
