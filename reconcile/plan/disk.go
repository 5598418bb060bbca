package plan

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
)

// DiskUse is what a pod has on the node's disk, in bytes by name. What is not
// known is left out and counts as nothing.
type DiskUse struct {
	// Volumes are its emptyDirs.
	Volumes map[string]int64
	// Layers are what its containers wrote to their own file systems, Logs what
	// they have of logs.
	Layers, Logs map[string]int64
}

// LimitsVolumes says that a pod has an emptyDir on disk with a sizeLimit. In
// memory the file system itself keeps the limit.
func LimitsVolumes(spec *v1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v v1.Volume) bool {
		return OnDisk(&v) && v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() > 0
	})
}

// OnDisk says that a volume is an emptyDir on the node's disk.
func OnDisk(v *v1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium == v1.StorageMediumDefault
}

// LimitsStorage says that a container of a pod has a limit of ephemeral
// storage. As with cpu and memory a limit of 0 is none.
func LimitsStorage(spec *v1.PodSpec) bool {
	limited := func(c v1.Container) bool { return c.Resources.Limits.StorageEphemeral().Sign() > 0 }
	return slices.ContainsFunc(spec.Containers, limited) || slices.ContainsFunc(spec.InitContainers, limited)
}

// Outgrown is why a pod is evicted for what it has on disk, "" while it keeps
// its limits. Limits are looked at in the kubelet's order, and each reason begins
// with its words: that of a volume; that of the pod, which is those of its
// containers together and bounds its volumes, layers and logs, also those of
// ephemeral containers; that of a
// container, which bounds its layer and logs. Init containers that end have no
// limit of their own; sidecars do, which the kubelet forgets.
func (u DiskUse) Outgrown(spec *v1.PodSpec) string {
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if !OnDisk(v) || v.EmptyDir.SizeLimit == nil {
			continue
		}
		if limit := v.EmptyDir.SizeLimit; limit.Sign() > 0 && limit.CmpInt64(u.Volumes[v.Name]) < 0 {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit) + advice(u.Volumes[v.Name])
		}
	}
	if !LimitsStorage(spec) {
		return ""
	}
	if limit, used := manifest.PodLimits(spec)[v1.ResourceEphemeralStorage], u.total(spec); limit.CmpInt64(used) < 0 {
		return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String()) + advice(used)
	}
	for i, c := range containersOf(spec) {
		if i < len(spec.InitContainers) && !manifest.IsSidecar(c) {
			continue
		}
		limit, used := c.Resources.Limits.StorageEphemeral(), u.Layers[c.Name]+u.Logs[c.Name]
		if limit.Sign() > 0 && limit.CmpInt64(used) < 0 {
			return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit) + advice(used)
		}
	}
	return ""
}

func (u DiskUse) total(spec *v1.PodSpec) (sum int64) {
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; OnDisk(v) {
			sum += u.Volumes[v.Name]
		}
	}
	for _, c := range containersOf(spec) {
		sum += u.Layers[c.Name] + u.Logs[c.Name]
	}
	for i := range spec.EphemeralContainers {
		name := spec.EphemeralContainers[i].Name
		sum += u.Layers[name] + u.Logs[name]
	}
	return sum
}

func advice(used int64) string {
	return fmt.Sprintf("It holds %s; raise the limit or write less, an edit starts the pod again", resource.NewQuantity(used, resource.BinarySI))
}
