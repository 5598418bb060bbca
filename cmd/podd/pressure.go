package main

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
)

// room is what the machine has left.
type room struct {
	memory, pids stock
	disk, images diskRoom // of podd's root directory, and of images
}

// diskRoom is a file system's; it is known where it could be asked.
type diskRoom struct {
	bytes, inodes stock
	known         bool
}

// stock is how much there is of something, 0 for no bound that is known, and how much
// of it is left.
type stock struct{ whole, left int64 }

func (s stock) below(t config.Threshold) bool { return s.whole > 0 && s.left < t.Of(s.whole) }

// under are the kinds of pressure that there are.
func (r room) under(p config.Pressure) map[v1.NodeConditionType]bool {
	return map[v1.NodeConditionType]bool{
		v1.NodeMemoryPressure: r.memory.below(p.Memory),
		v1.NodeDiskPressure: r.disk.bytes.below(p.Nodefs) || r.disk.inodes.below(p.NodefsInodes) ||
			r.images.bytes.below(p.Imagefs) || r.images.inodes.below(p.ImagefsInodes),
		v1.NodePIDPressure: r.pids.below(p.Pids),
	}
}

// pressures remember when there was pressure last.
type pressures struct {
	by   config.Pressure
	last map[v1.NodeConditionType]time.Time // nil: none was seen
}

// see returns the kinds that a node shows: those that are there, or were not long
// ago.
func (p *pressures) see(r room, now time.Time) map[v1.NodeConditionType]bool {
	if p.last == nil {
		p.last = map[v1.NodeConditionType]time.Time{}
	}
	shown := map[v1.NodeConditionType]bool{}
	for kind, is := range r.under(p.by) {
		if is {
			p.last[kind] = now
		}
		at, was := p.last[kind]
		shown[kind] = was && now.Sub(at) < p.by.Transition
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
