package stats

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Disk contains the disk usage at one time. It is immutable.
type Disk struct {
	// At is when the measurement began.
	At time.Time
	// Root is the whole file system of volumes and logs.
	Root Filesystem
	// Images and Layers are the usage of images and of containers' writable layers; nil if
	// the runtime does not report it.
	Images, Layers *Filesystem
	Pods           map[types.UID]PodDisk
	// MaxPIDs and Processes are the maximum and current number of processes.
	MaxPIDs, Processes int64
}

// Filesystem is a file system, or the part of it that something uses.
type Filesystem struct {
	// Used and InodesUsed are those of the part; nil: unknown.
	Used, InodesUsed *uint64
	// The other fields are those of the whole file system; nil if unknown.
	*Space
	At time.Time
}

// Space is the size of a file system.
type Space struct{ Capacity, Available, Inodes, InodesFree uint64 }

// PodDisk is the disk usage of one pod.
type PodDisk struct {
	// At is when it was measured; if Cut is set, when the whole Disk was.
	At time.Time
	// Cut reports that the measurement was not completed, so some values are unknown.
	Cut     bool
	Volumes []Volume
	// Logs has names of containers as keys. Layers, the writable layers, has IDs as keys
	// and is nil if the runtime did not respond in time.
	Logs, Layers map[string]Filesystem
	// Files are the files that podd mounts into containers: /etc/hosts and termination
	// messages.
	Files *Filesystem
}

// Volume is the disk usage of one volume of a pod.
type Volume struct {
	Name string
	// Claim is the name of its claim; "": none.
	Claim string
	// Own reports that it counts as ephemeral storage of the pod.
	Own bool
	// Abnormal is the volume condition reported by its CSI driver; nil: not reported.
	Abnormal *bool
	Filesystem
}

// plus adds the usage of parts, which are in the file system of f.
func (f Filesystem) plus(parts ...Filesystem) Filesystem {
	for _, p := range parts {
		f.Used, f.InodesUsed = sumKnown(f.Used, p.Used), sumKnown(f.InodesUsed, p.InodesUsed)
		if p.At.After(f.At) {
			f.At = p.At
		}
	}
	return f
}

// sumKnown returns a sum in which unknown values count as zero.
func sumKnown(a, b *uint64) *uint64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	n := *a + *b
	return &n
}
