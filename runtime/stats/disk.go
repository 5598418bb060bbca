package stats

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Disk is what is on disks at one moment. It is immutable.
type Disk struct {
	// At is when measuring it began.
	At time.Time
	// Root is the file system of volumes and logs, all of it.
	Root Filesystem
	// Images and Layers are what images and containers' own layers take; nil
	// where the runtime does not say.
	Images, Layers *Filesystem
	Pods           map[types.UID]PodDisk
	// MaxPIDs and Processes are how many processes there may be and are.
	MaxPIDs, Processes int64

	// lacks says that of a pod nothing is known yet, or none of its layers.
	lacks bool
}

// Filesystem is a file system, or a part of it that is used for something.
type Filesystem struct {
	// Used and InodesUsed are of the part; nil: not known.
	Used, InodesUsed *uint64
	// The rest is of the whole file system; nil where it is not known.
	*Space
	At time.Time
}

// Space is what a file system has.
type Space struct{ Capacity, Available, Inodes, InodesFree uint64 }

// PodDisk is what one pod has on disk.
type PodDisk struct {
	// At is when it was measured; of one that was cut, when the whole Disk was.
	At time.Time
	// Cut says that it was not measured to its end: what is missing is not known.
	Cut     bool
	Volumes []Volume
	// Logs are by name of container; Layers, their own file systems, by id, nil
	// where the runtime did not say in time.
	Logs, Layers map[string]Filesystem
	// Hosts is /etc/hosts.
	Hosts *Filesystem
}

// Volume is one volume of a pod.
type Volume struct {
	Name string
	// Claim is the name of the claim that it is; "": none.
	Claim string
	// Own says that it counts as the pod's ephemeral storage.
	Own bool
	// Abnormal is whether its driver says that something is wrong with it; nil: it
	// says nothing.
	Abnormal *bool
	Filesystem
}

// sum adds up parts, in the file system of the first.
func (f Filesystem) plus(parts ...Filesystem) Filesystem {
	for _, p := range parts {
		f.Used, f.InodesUsed = added(f.Used, p.Used), added(f.InodesUsed, p.InodesUsed)
		if p.At.After(f.At) {
			f.At = p.At
		}
	}
	return f
}

// added is a sum in which what is not known counts nothing.
func added(a, b *uint64) *uint64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	n := *a + *b
	return &n
}
