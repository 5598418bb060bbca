package pressure

import "testing"

// TestMet_String checks that the available amount and the threshold are rounded. The available
// amount must never be shown as equal to a larger threshold. A threshold that is configured as a
// percentage must be shown with the percentage.
func TestMet_String(t *testing.T) {
	met := func(s Signal, l Limit, capacity, available int64) MetThreshold {
		return MetThreshold{Threshold{Signal: s, Limit: l}, l.AmountFor(capacity), available}
	}
	for want, m := range map[string]MetThreshold{
		"memory.available: 99Mi available, threshold 100Mi":                  met(MemoryAvailable, Limit{Amount: 100 << 20}, 1<<34, 100<<20-1),
		"memory.available: 600Mi available, threshold 1Gi":                   met(MemoryAvailable, Limit{Amount: 1 << 30}, 1<<34, 600<<20+12345),
		"nodefs.available: 4663Mi available, threshold 4769Mi (5%)":          met(NodefsAvailable, Limit{Share: 0.05}, 100_000_000_000, 4_890_000_001),
		"imagefs.available: 4768Mi available, threshold 4769Mi (5%)":         met(ImagefsAvailable, Limit{Share: 0.05}, 100_000_000_000, 4_999_999_999),
		"imagefs.available: 900 available, threshold 20Ki":                   met(ImagefsAvailable, Limit{Amount: 20 << 10}, 1<<20, 900),
		"memory.available: 50 available, threshold 100":                      met(MemoryAvailable, Limit{Amount: 100}, 1000, 50),
		"nodefs.inodesFree: 4999 available, threshold 5000 (5%)":             met(NodefsInodesFree, Limit{Share: 0.05}, 100_000, 4999),
		"nodefs.inodesFree: 50000000 available, threshold 100000000 (12.5%)": met(NodefsInodesFree, Limit{Share: 0.125}, 800_000_000, 50_000_000),
	} {
		if got := m.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
