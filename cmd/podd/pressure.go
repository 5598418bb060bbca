package main

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// room is what the machine has left.
type room struct {
	memoryLeft   int64
	disk, images diskRoom // of podd's root directory, and of images
}

// diskRoom is a file system's, in bytes and inodes. One without a total has no bound
// that is known.
type diskRoom struct {
	total, left, inodes, inodesLeft uint64
	known                           bool
}

// The thresholds from which a node is under pressure, a kubelet's when it is told of
// none. Processes have none.
const (
	leastMemory                          = 100 << 20
	leastDisk, leastImages               = 10, 15 // percent
	leastInodes                          = 5
	transition             time.Duration = 5 * time.Minute // without pressure until it is over
)

// under are the kinds of pressure that there are.
func (r room) under() map[v1.NodeConditionType]bool {
	return map[v1.NodeConditionType]bool{
		v1.NodeMemoryPressure: r.memoryLeft < leastMemory,
		v1.NodeDiskPressure:   r.disk.below(leastDisk) || r.images.below(leastImages),
		v1.NodePIDPressure:    false,
	}
}

func (s diskRoom) below(percent uint64) bool {
	return s.left*100 < s.total*percent || s.inodesLeft*100 < s.inodes*leastInodes
}

// pressures remember when there was pressure last. The zero value has seen none.
type pressures struct {
	last map[v1.NodeConditionType]time.Time
}

// see returns the kinds that a node shows: those that are there, or were not long
// ago.
func (p *pressures) see(r room, now time.Time) map[v1.NodeConditionType]bool {
	if p.last == nil {
		p.last = map[v1.NodeConditionType]time.Time{}
	}
	shown := map[v1.NodeConditionType]bool{}
	for kind, is := range r.under() {
		if is {
			p.last[kind] = now
		}
		at, was := p.last[kind]
		shown[kind] = was && now.Sub(at) < transition
	}
	return shown
}

// pressureWords are a kubelet's for a kind of pressure: reason, message, and the
// reason of the event when it begins or ends.
var pressureWords = map[v1.NodeConditionType][2][3]string{
	v1.NodeMemoryPressure: {
		{"KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"},
		{"KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"},
	},
	v1.NodeDiskPressure: {
		{"KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"},
		{"KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"},
	},
	v1.NodePIDPressure: {
		{"KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"},
		{"KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"},
	},
}

// pressureKinds are in the order of a kubelet's conditions.
var pressureKinds = []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure}

func wordsOf(kind v1.NodeConditionType, is bool) [3]string {
	if is {
		return pressureWords[kind][1]
	}
	return pressureWords[kind][0]
}
