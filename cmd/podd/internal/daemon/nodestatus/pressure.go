package nodestatus

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/eviction/pressure"
)

// observations contains the observed resources of the node. The node is under pressure if one of
// them is scarce.
type observations struct {
	memory, pids observation
	disk, images diskObservation // file systems of the root directory and of images
}

// A diskObservation is an observation of a file system. isKnown is false if the file system
// could not be read.
type diskObservation struct {
	bytes, inodes observation
	isKnown       bool
}

// An observation contains the capacity of a resource and the available amount. A capacity
// of 0 is unknown or unlimited.
type observation struct{ capacity, available int64 }

// isBelow reports whether the available amount is less than a limit.
func (s observation) isBelow(t pressure.Limit) bool {
	return t.IsCrossed(s.capacity, s.available)
}

// pressureConditions returns, for each kind of pressure, whether the pressure exists.
func (r observations) pressureConditions(p pressure.Policy) map[v1.NodeConditionType]bool {
	return map[v1.NodeConditionType]bool{
		v1.NodeMemoryPressure: r.memory.isBelow(p.Hard(pressure.MemoryAvailable)),
		v1.NodeDiskPressure: r.disk.bytes.isBelow(p.Hard(pressure.NodefsAvailable)) || r.disk.inodes.isBelow(p.Hard(pressure.NodefsInodesFree)) ||
			r.images.bytes.isBelow(p.Hard(pressure.ImagefsAvailable)) || r.images.inodes.isBelow(p.Hard(pressure.ImagefsInodesFree)),
		v1.NodePIDPressure: r.pids.isBelow(p.Hard(pressure.PIDAvailable)),
	}
}

// pressureTracker records the time at which each kind of pressure last existed.
type pressureTracker struct {
	policy      pressure.Policy
	lastExisted map[v1.NodeConditionType]time.Time // may be nil
}

// update returns the pressure conditions to publish. It publishes a kind of pressure until the
// pressure has been absent for the transition period.
func (p *pressureTracker) update(r observations, now time.Time) map[v1.NodeConditionType]bool {
	if p.lastExisted == nil {
		p.lastExisted = map[v1.NodeConditionType]time.Time{}
	}
	published := map[v1.NodeConditionType]bool{}
	for kind, exists := range r.pressureConditions(p.policy) {
		if exists {
			p.lastExisted[kind] = now
		}
		last, existed := p.lastExisted[kind]
		published[kind] = existed && now.Sub(last) < p.policy.TransitionPeriod
	}
	return published
}
