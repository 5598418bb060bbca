package pressure

import (
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// Usage is the resource usage of one pod. Values that were not measured are 0.
type Usage struct {
	MemoryBytes int64 // working set
	Processes   int64
	// Volumes is the usage of local volumes, Logs that of container logs, and Layers that of the
	// writable layers of containers.
	Volumes, Logs, Layers DiskUsage
	Containers            []ContainerUsage
}

// DiskUsage is the usage of a file system.
type DiskUsage struct {
	Bytes, Inodes int64
	// IsLowerBound reports whether the usage may be larger, because there are too many files to count
	// all of them.
	IsLowerBound bool
}

// ContainerUsage is the usage of one container. DiskBytes includes its logs and its writable layer.
type ContainerUsage struct {
	Name                   string
	MemoryBytes, DiskBytes int64
}

// A Candidate is a pod that may be evicted.
type Candidate struct {
	Pod *v1.Pod
	// Usage is the usage of the pod; nil if it could not be measured.
	Usage *Usage
}

// IsProtected reports whether the pod is critical and therefore never evicted.
func IsProtected(pod *v1.Pod) bool {
	return pod.Spec.Priority != nil && *pod.Spec.Priority >= manifest.CriticalPriority
}

// ReclaimsContainers reports whether the writable layers of containers are on the file system of
// signal, so that removing dead containers makes space on it.
func (l Layout) ReclaimsContainers(signal Signal) bool {
	filesystem, isDisk := l.filesystem(signal)
	return isDisk && filesystem == l.Containerfs
}

// ReclaimsImages reports whether images are on the file system of signal, so that removing unused
// images makes space on it.
func (l Layout) ReclaimsImages(signal Signal) bool {
	filesystem, isDisk := l.filesystem(signal)
	return isDisk && filesystem == l.Imagefs
}

// ReclaimsLogs reports whether the logs of pods are on the file system of signal, so that removing the
// logs of finished pods makes space on it.
func (l Layout) ReclaimsLogs(signal Signal) bool {
	filesystem, isDisk := l.filesystem(signal)
	return isDisk && filesystem == l.Nodefs
}

// filesystem returns the ID of the file system of signal. isDisk is false if the signal belongs to
// no file system.
func (l Layout) filesystem(signal Signal) (id uint64, isDisk bool) {
	switch signal {
	case NodefsAvailable, NodefsInodesFree:
		return l.Nodefs, true
	case ImagefsAvailable, ImagefsInodesFree:
		return l.Imagefs, true
	case ContainerfsAvailable, ContainerfsInodesFree:
		return l.Containerfs, true
	}
	return 0, false
}

// usageFor returns how much u uses of the resource of signal. For a signal of a file system, only
// the files on this file system count. isLowerBound reports whether the number of files may be larger. It
// is not set for bytes, because few large files can use more than many small ones.
func (l Layout) usageFor(signal Signal, u *Usage) (usage int64, isLowerBound bool) {
	filesystem, isDisk := l.filesystem(signal)
	if !isDisk {
		if signal.Resource() == ResourcePIDs {
			return u.Processes, false
		}
		return u.MemoryBytes, false
	}
	var sum DiskUsage
	if filesystem == l.Nodefs {
		sum = sum.plus(u.Volumes).plus(u.Logs)
	}
	if filesystem == l.Containerfs {
		sum = sum.plus(u.Layers)
	}
	if signal.Resource() == ResourceInodes {
		return sum.Inodes, sum.IsLowerBound
	}
	return sum.Bytes, false
}

func (d DiskUsage) plus(e DiskUsage) DiskUsage {
	return DiskUsage{d.Bytes + e.Bytes, d.Inodes + e.Inodes, d.IsLowerBound || e.IsLowerBound}
}

// requestFor returns how much the pod requests of the resource of signal. Pods cannot request inodes
// and processes.
func requestFor(signal Signal, pod *v1.Pod) int64 {
	q := manifest.PodRequests(pod)[signal.Resource()]
	return q.Value()
}
