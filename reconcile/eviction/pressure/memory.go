package pressure

// MemoryDistance returns by how many bytes the memory usage must grow until the next threshold of s is
// met. s is MemoryAvailable for the usage of the node, and AllocatableMemoryAvailable for the usage of
// all pods. MemoryDistance returns 0 if there is no such threshold, or if all of them are already met.
func (p *Policy) MemoryDistance(o Observations, s Signal) (distance int64) {
	observation := o.Signals[s]
	if observation.Capacity == 0 {
		return 0
	}
	for _, t := range p.Thresholds {
		remaining := observation.Available - t.Limit.AmountFor(observation.Capacity) + 1
		if t.Signal == s && remaining > 0 && (distance == 0 || remaining < distance) {
			distance = remaining
		}
	}
	return distance
}
