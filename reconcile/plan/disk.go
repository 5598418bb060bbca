package plan

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
)

// DiskUse is the disk usage of a pod on the node, in bytes. It omits usage that could not be
// measured.
type DiskUse struct {
	// Volumes contains the usage of the emptyDirs, by volume name.
	Volumes map[string]int64
	// Layers, Logs and Messages contain the usage of the writable layers, the logs and the
	// termination messages, by container name.
	Layers, Logs, Messages map[string]int64
	// HostsFile is the size of the hosts file, to which all containers of the pod can write.
	HostsFile int64
	// HasImageDisk reports whether images or writable layers are in another file system than the pod
	// directories, or if this is unknown. As in the kubelet, the limits of containers then do not apply
	// to writable layers, but the limit of the pod does.
	HasImageDisk bool
	// Incomplete contains the parts of the pod whose usage may be larger than measured, because
	// they were not measured completely.
	Incomplete IncompleteMeasurements
}

// IncompleteMeasurements contains the volumes and the container logs that exceeded a limit of the
// measurement and therefore were not measured completely. The keys are the names of the volumes or
// containers. The values describe the limit, for example "more than 1000 files and directories". A
// pod with such a volume or log counts as exceeding its storage limit, because otherwise the pod
// could hide any amount of data.
type IncompleteMeasurements struct{ Volumes, Logs map[string]string }

// HasVolumeLimit reports whether a pod has an emptyDir on disk with a sizeLimit. The limit of an
// emptyDir in memory is enforced by its file system.
func HasVolumeLimit(spec *v1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v v1.Volume) bool {
		return IsOnDisk(&v) && v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() > 0
	})
}

// IsOnDisk reports whether a volume is an emptyDir on the node's disk.
func IsOnDisk(v *v1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium == v1.StorageMediumDefault
}

// HasStorageLimit reports whether a container of a pod has a limit of ephemeral storage. As
// with cpu and memory, a limit of 0 is no limit.
func HasStorageLimit(spec *v1.PodSpec) bool {
	hasLimit := func(c v1.Container) bool { return c.Resources.Limits.StorageEphemeral().Sign() > 0 }
	return slices.ContainsFunc(spec.Containers, hasLimit) || slices.ContainsFunc(spec.InitContainers, hasLimit)
}

// An ExceededLimit is a storage limit that a pod exceeds.
type ExceededLimit struct {
	Signal string // the kubelet's name of the kind of limit in metrics
	// Reason names the limit. It begins with the kubelet's words.
	Reason string
	// Remedy contains the usage, which may change at any time, and the remedy.
	Remedy string
}

// The kubelet's names of the kinds of storage limits.
const (
	signalVolumeLimit    = "emptydirfs.limit"
	signalPodLimit       = "ephemeralpodfs.limit"
	SignalContainerLimit = "ephemeralcontainerfs.limit"
)

// Message returns the reason and the remedy.
func (l *ExceededLimit) Message() string { return l.Reason + " " + l.Remedy }

// ExceededLimit returns the first limit that a pod with this spec exceeds; nil if there is none. A
// part that could not be measured completely exceeds all limits that apply to it. The limits are
// checked in the kubelet's order:
//
//   - the limit of a volume;
//   - the limit of the pod, which is the sum of its containers' limits. It applies to the whole
//     DiskUse, including ephemeral containers;
//   - the limit of a container, which applies to its logs and termination messages, and to its
//     layer unless HasImageDisk is set. Init containers other than sidecars have no limit of their
//     own.
func (u DiskUse) ExceededLimit(spec *v1.PodSpec) *ExceededLimit {
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if !IsOnDisk(v) || v.EmptyDir.SizeLimit == nil {
			continue
		}
		limit, usage, excess := v.EmptyDir.SizeLimit, u.Volumes[v.Name], u.Incomplete.Volumes[v.Name]
		switch {
		case limit.Sign() <= 0:
		case limit.CmpInt64(usage) < 0:
			return &ExceededLimit{signalVolumeLimit, fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q.", v.Name, limit), usageRemedy(usage)}
		case excess != "":
			return &ExceededLimit{signalVolumeLimit, fmt.Sprintf("Usage of EmptyDir volume %q cannot be measured and counts as above the limit %q: the volume has %s.", v.Name, limit, excess), incompleteRemedy(usage)}
		}
	}
	if !HasStorageLimit(spec) {
		return nil
	}
	limit, used, excess := manifest.PodLimits(&v1.Pod{Spec: *spec})[v1.ResourceEphemeralStorage], u.total(spec), u.describeIncomplete(spec)
	switch {
	case limit.CmpInt64(used) < 0:
		return &ExceededLimit{signalPodLimit, fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s.", limit.String()), usageRemedy(used)}
	case excess != "":
		return &ExceededLimit{signalPodLimit, fmt.Sprintf("Pod ephemeral local storage usage cannot be measured and counts as above the total limit of containers %s: %s.", limit.String(), excess), incompleteRemedy(used)}
	}
	for i, c := range containersOf(spec) {
		if i < len(spec.InitContainers) && !manifest.IsSidecar(c) {
			continue
		}
		limit, used := c.Resources.Limits.StorageEphemeral(), u.containerUsage(c.Name)
		if u.HasImageDisk {
			used -= u.Layers[c.Name]
		}
		if limit.Sign() > 0 && limit.CmpInt64(used) < 0 {
			return &ExceededLimit{SignalContainerLimit, fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q.", c.Name, limit), usageRemedy(used)}
		}
	}
	return nil
}

// containerUsage returns the usage of the container with this name.
func (u DiskUse) containerUsage(name string) int64 {
	return u.Layers[name] + u.Logs[name] + u.Messages[name]
}

// total returns the usage to which the limit of the pod applies.
func (u DiskUse) total(spec *v1.PodSpec) int64 {
	sum := u.HostsFile
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; IsOnDisk(v) {
			sum += u.Volumes[v.Name]
		}
	}
	for _, c := range containersOf(spec) {
		sum += u.containerUsage(c.Name)
	}
	for i := range spec.EphemeralContainers {
		sum += u.containerUsage(spec.EphemeralContainers[i].Name)
	}
	return sum
}

// describeIncomplete returns a description of the first part of the pod that could not be measured
// completely; "" if there is none.
func (u DiskUse) describeIncomplete(spec *v1.PodSpec) string {
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; IsOnDisk(v) && u.Incomplete.Volumes[v.Name] != "" {
			return fmt.Sprintf("EmptyDir volume %q has %s", v.Name, u.Incomplete.Volumes[v.Name])
		}
	}
	names := slices.Sorted(maps.Keys(u.Incomplete.Logs))
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the log directory of container %s has %s", names[0], u.Incomplete.Logs[names[0]])
}

// usageRemedy returns the remedy for a pod that uses this number of bytes.
func usageRemedy(usage int64) string {
	return fmt.Sprintf("The usage is %s; raise the limit or write less", quantity(usage))
}

// incompleteRemedy returns the remedy for a pod that uses more than this number of bytes.
func incompleteRemedy(usage int64) string {
	return fmt.Sprintf("The usage is at least %s; write fewer files or remove the limit", quantity(usage))
}

func quantity(bytes int64) *resource.Quantity { return resource.NewQuantity(bytes, resource.BinarySI) }
