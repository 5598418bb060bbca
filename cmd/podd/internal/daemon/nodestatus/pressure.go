package nodestatus

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
)

// observations contain the resources of the node that cause evictions if they are scarce.
type observations struct {
	memory, pids observation
	disk, images diskObservation // file systems of the root directory and of images
}

// A diskObservation is an observation of a file system. known is false if the file system
// could not be read.
type diskObservation struct {
	bytes, inodes observation
	known         bool
}

// An observation contains the capacity of a resource and the available amount. A capacity
// of 0 is unknown or unlimited.
type observation struct{ capacity, available int64 }

// below reports whether the available amount is less than a threshold.
func (s observation) below(t config.Threshold) bool {
	return s.capacity > 0 && s.available < t.Of(s.capacity)
}

// conditions returns for each kind of pressure whether it exists.
func (r observations) conditions(p config.Pressure) map[v1.NodeConditionType]bool {
	return map[v1.NodeConditionType]bool{
		v1.NodeMemoryPressure: r.memory.below(p.Memory),
		v1.NodeDiskPressure: r.disk.bytes.below(p.Nodefs) || r.disk.inodes.below(p.NodefsInodes) ||
			r.images.bytes.below(p.Imagefs) || r.images.inodes.below(p.ImagefsInodes),
		v1.NodePIDPressure: r.pids.below(p.Pids),
	}
}

// pressures records when each kind of pressure last existed.
type pressures struct {
	thresholds config.Pressure
	last       map[v1.NodeConditionType]time.Time // may be nil
}

// update returns the pressure conditions to publish. A kind that existed within the
// transition period is still published.
func (p *pressures) update(r observations, now time.Time) map[v1.NodeConditionType]bool {
	if p.last == nil {
		p.last = map[v1.NodeConditionType]time.Time{}
	}
	published := map[v1.NodeConditionType]bool{}
	for kind, exists := range r.conditions(p.thresholds) {
		if exists {
			p.last[kind] = now
		}
		last, existed := p.last[kind]
		published[kind] = existed && now.Sub(last) < p.thresholds.Transition
	}
	return published
}
