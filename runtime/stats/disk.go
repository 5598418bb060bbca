package stats

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Disk contains the result of one measurement of disks. It is immutable.
type Disk struct {
	// At is the time at which the measurement began.
	At time.Time
	// Root is the file system of volumes and logs, with the usage of the whole file system.
	Root Filesystem
	// Images is the disk usage of images, and Layers is the disk usage of containers' writable
	// layers. Both are nil if the runtime does not report them.
	Images, Layers *Filesystem
	Pods           map[types.UID]PodDisk
	// Unreached contains the pods that existed when the measurement began and were reached neither
	// by it nor by an earlier measurement. A pod that is neither in Pods nor in Unreached is newer
	// than the measurement.
	Unreached map[types.UID]bool
	// MaxPIDs is the maximum number of processes on the node, and ProcessCount is the current
	// number.
	MaxPIDs, ProcessCount int64
}

// A Filesystem contains the disk usage of some files, such as those of a volume, and the size of
// their file system.
type Filesystem struct {
	// UsedBytes and InodesUsed are the usage of the files. They are nil if the usage is unknown.
	UsedBytes, InodesUsed *uint64
	// IsLowerBound reports whether the usage may be larger, because there are too many files to count
	// all of them.
	IsLowerBound bool
	// Space describes the whole file system. It is nil if unknown.
	*Space
	At time.Time
}

// Space is the size and free space of a file system in bytes and inodes.
type Space struct{ CapacityBytes, AvailableBytes, Inodes, InodesFree uint64 }

// A PodDisk is the disk usage of one pod.
type PodDisk struct {
	// At is the time at which the pod was measured. If Incomplete is true, At is the time at which
	// the measurement of all pods began.
	At time.Time
	// Incomplete reports whether the measurement of the pod was interrupted, so that some
	// values are unknown.
	Incomplete bool
	Volumes    []Volume
	// Logs contains the usage of logs by container name. Layers contains the usage of
	// writable layers by container ID. Both include exited containers. Layers is nil if the runtime
	// did not respond in time.
	Logs, Layers map[string]Filesystem
	// ManagedFiles is the usage of the files that podd mounts into containers: /etc/hosts and
	// termination messages.
	ManagedFiles *Filesystem
}

// A Volume is the disk usage of one volume of a pod.
type Volume struct {
	Name string
	// Claim is the name of the volume's PersistentVolumeClaim, or "" if it has none.
	Claim string
	// Ephemeral reports whether the usage is part of the pod's ephemeral storage.
	Ephemeral bool
	Filesystem
}

// plus returns f with an increased usage: it adds the usage of all parts. The parts must be in the
// file system of f.
func (f Filesystem) plus(parts ...Filesystem) Filesystem {
	for _, p := range parts {
		f.UsedBytes, f.InodesUsed = addOptional(f.UsedBytes, p.UsedBytes), addOptional(f.InodesUsed, p.InodesUsed)
		f.IsLowerBound = f.IsLowerBound || p.IsLowerBound
		if p.At.After(f.At) {
			f.At = p.At
		}
	}
	return f
}

// addOptional returns a + b, where an unknown value (nil) is treated as zero. It returns nil
// if both are unknown.
func addOptional(a, b *uint64) *uint64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	n := *a + *b
	return &n
}
