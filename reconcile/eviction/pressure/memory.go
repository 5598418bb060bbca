package pressure

// MemoryDistance returns by how many bytes the memory usage of the node must grow until the next
// threshold of memory.available is met. It returns 0 if there is no threshold that is not met yet.
func (p *Policy) MemoryDistance(o Observations) (distance int64) {
	observed, ok := o.Signals[MemoryAvailable]
	if !ok {
		return 0
	}
	for _, t := range p.Thresholds {
		left := observed.Available - t.Limit.AmountFor(observed.Capacity) + 1
		if t.Signal == MemoryAvailable && left > 0 && (distance == 0 || left < distance) {
			distance = left
		}
	}
	return distance
}
