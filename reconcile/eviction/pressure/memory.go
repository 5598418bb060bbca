package pressure

// MemoryDistance returns by how many bytes the memory usage of the node must grow until the next
// threshold of memory.available is met. It returns 0 if there is no such threshold, or if all of
// them are already met.
func (p *Policy) MemoryDistance(o Observations) (distance int64) {
	observation, ok := o.Signals[MemoryAvailable]
	if !ok {
		return 0
	}
	for _, t := range p.Thresholds {
		remaining := observation.Available - t.Limit.AmountFor(observation.Capacity) + 1
		if t.Signal == MemoryAvailable && remaining > 0 && (distance == 0 || remaining < distance) {
			distance = remaining
		}
	}
	return distance
}
