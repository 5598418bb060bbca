package csi

import (
	"maps"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
)

// capability returns the capability of the volume for requests, as in the kubelet. For a block
// device, the capability contains no mount flags.
func (v Volume) capability(caps capabilities) *csi.VolumeCapability {
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: v.accessMode(caps)}}
	if v.Block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		return c
	}
	mount := &csi.VolumeCapability_MountVolume{FsType: v.FSType, MountFlags: v.mountFlags()}
	if g := v.fsGroup(); g != nil && caps.supportsGroup() {
		mount.VolumeMountGroup = strconv.FormatInt(*g, 10)
	}
	c.AccessType = &csi.VolumeCapability_Mount{Mount: mount}
	return c
}

// mountFlags returns the mount options of the volume, and the option for its SELinux label.
func (v Volume) mountFlags() []string {
	if label := v.SELinux.Option(); label != "" {
		return append(slices.Clone(v.MountOptions), label)
	}
	return v.MountOptions
}

func (v Volume) accessMode(caps capabilities) csi.VolumeCapability_AccessMode_Mode {
	switch v.AccessMode {
	case v1.ReadOnlyMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case v1.ReadWriteMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case v1.ReadWriteOncePod:
		if caps.supportsMultiWriter() {
			return csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
		}
	default:
		if caps.supportsMultiWriter() {
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
func (v Volume) mustSetGroup(caps capabilities) bool {
	if v.fsGroup() == nil || v.Block || v.ReadOnly || caps.supportsGroup() {
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
	isSingleNode := !v.isPersistent() || v.AccessMode == v1.ReadWriteOnce || v.AccessMode == v1.ReadWriteOncePod
	return v.FSType != "" && isSingleNode
}

func (v Volume) stageRequest(p volumePaths, caps capabilities) *csi.NodeStageVolumeRequest {
	return &csi.NodeStageVolumeRequest{
		VolumeId: v.Handle, PublishContext: v.Published, StagingTargetPath: p.stagingPath,
		VolumeCapability: v.capability(caps), Secrets: secretData(v.StageSecret), VolumeContext: v.Attributes,
	}
}

func (v Volume) publishRequest(p volumePaths, caps capabilities) *csi.NodePublishVolumeRequest {
	r := &csi.NodePublishVolumeRequest{
		VolumeId: v.id().Handle, PublishContext: v.Published, TargetPath: p.target, Readonly: v.ReadOnly,
		VolumeCapability: v.capability(caps), Secrets: secretData(v.PublishSecret), VolumeContext: v.volumeContext(),
	}
	if v.Block || v.isPersistent() && caps.supportsStaging() {
		r.StagingTargetPath = p.stagingPath
	}
	return r
}

func (v Volume) expandRequest(p volumePaths, caps capabilities) *csi.NodeExpandVolumeRequest {
	r := &csi.NodeExpandVolumeRequest{
		VolumeId: v.Handle, VolumePath: p.target, CapacityRange: &csi.CapacityRange{RequiredBytes: v.Capacity},
		VolumeCapability: v.capability(caps), Secrets: secretData(v.ExpandSecret),
	}
	if mount := r.VolumeCapability.GetMount(); mount != nil {
		mount.VolumeMountGroup, mount.MountFlags = "", v.MountOptions // as in the kubelet
	}
	if caps.supportsStaging() {
		r.StagingTargetPath = p.stagingPath
	}
	return r
}

// volumeContext returns the volume context of a publish request. It contains the attributes of the
// volume, the pod info if the driver requires it, and the pod's service account tokens.
func (v Volume) volumeContext() map[string]string {
	attributes := maps.Clone(v.Attributes)
	if attributes == nil {
		attributes = map[string]string{}
	}
	if v.DriverSpec != nil && v.DriverSpec.PodInfoOnMount != nil && *v.DriverSpec.PodInfoOnMount {
		attributes["csi.storage.k8s.io/pod.name"] = v.Pod.Object.Name
		attributes["csi.storage.k8s.io/pod.namespace"] = v.Pod.Object.Namespace
		attributes["csi.storage.k8s.io/pod.uid"] = string(v.Pod.UID)
		attributes["csi.storage.k8s.io/serviceAccount.name"] = v.Pod.Object.Spec.ServiceAccountName
		attributes["csi.storage.k8s.io/ephemeral"] = strconv.FormatBool(!v.isPersistent())
	}
	if v.Tokens != "" && !v.Block {
		attributes["csi.storage.k8s.io/serviceAccount.tokens"] = v.Tokens
	}
	return attributes
}

// secretData converts the data of a Secret to the type that requests use.
func secretData(data map[string][]byte) map[string]string {
	values := make(map[string]string, len(data))
	for key, value := range data {
		values[key] = string(value)
	}
	return values
}

// hasSameRequest reports whether the publish requests for v and o are equal.
func (v Volume) hasSameRequest(o Volume) bool {
	return maps.Equal(v.Published, o.Published) && maps.Equal(v.volumeContext(), o.volumeContext()) &&
		maps.Equal(secretData(v.PublishSecret), secretData(o.PublishSecret)) && slices.Equal(v.MountOptions, o.MountOptions)
}

func (v Volume) requiresRepublish() bool {
	return v.DriverSpec != nil && v.DriverSpec.RequiresRepublish != nil && *v.DriverSpec.RequiresRepublish
}
