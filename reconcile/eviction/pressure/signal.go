package pressure

import (
	v1 "k8s.io/api/core/v1"
)

// A Signal is an amount that is observed on the node. Its value is the kubelet's name, which is a
// key of evictionHard.
type Signal string

// The signals.
const (
	MemoryAvailable            Signal = "memory.available"
	AllocatableMemoryAvailable Signal = "allocatableMemory.available"
	NodefsAvailable            Signal = "nodefs.available"
	NodefsInodesFree           Signal = "nodefs.inodesFree"
	ImagefsAvailable           Signal = "imagefs.available"
	ImagefsInodesFree          Signal = "imagefs.inodesFree"
	ContainerfsAvailable       Signal = "containerfs.available"
	ContainerfsInodesFree      Signal = "containerfs.inodesFree"
	PIDAvailable               Signal = "pid.available"
)

// Signals contains all signals. Thresholds of equal urgency are acted on in this order.
var Signals = []Signal{
	MemoryAvailable, AllocatableMemoryAvailable, NodefsAvailable, NodefsInodesFree, ImagefsAvailable, ImagefsInodesFree,
	ContainerfsAvailable, ContainerfsInodesFree, PIDAvailable,
}

// The resources that are not resources of a pod spec. The values are those in the messages of a
// kubelet.
const (
	ResourceInodes v1.ResourceName = "inodes"
	ResourcePIDs   v1.ResourceName = "pids"
)

// Resource returns the resource that is short while a threshold of the signal is met.
func (s Signal) Resource() v1.ResourceName {
	switch s {
	case NodefsAvailable, ImagefsAvailable, ContainerfsAvailable:
		return v1.ResourceEphemeralStorage
	case NodefsInodesFree, ImagefsInodesFree, ContainerfsInodesFree:
		return ResourceInodes
	case PIDAvailable:
		return ResourcePIDs
	}
	return v1.ResourceMemory
}

// Condition returns the node condition that is true while a threshold of the signal is met.
func (s Signal) Condition() v1.NodeConditionType {
	switch s.Resource() {
	case v1.ResourceMemory:
		return v1.NodeMemoryPressure
	case ResourcePIDs:
		return v1.NodePIDPressure
	}
	return v1.NodeDiskPressure
}
