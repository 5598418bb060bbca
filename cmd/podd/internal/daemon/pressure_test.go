package daemon

import (
	"testing"

	"podd/reconcile/eviction/pressure"
)

func TestPressureProblem(t *testing.T) {
	if p := pressureProblem(pressure.Conditions{}, nil); p != nil {
		t.Errorf("no condition: got %v, want none", p)
	}
	met := []pressure.Met{
		{Threshold: pressure.Threshold{Signal: pressure.MemoryAvailable}, Quantity: 100 << 20, Available: 50 << 20},
		{Threshold: pressure.Threshold{Signal: pressure.NodefsInodesFree}, Quantity: 5000, Available: 12},
	}
	const remedy = "; podd evicts pods while a threshold is met, and does not start all pods; make more of the resource available"
	for want, p := range map[string]string{
		"the node has the condition [MemoryPressure DiskPressure]; memory.available: 50Mi available, threshold 100Mi, nodefs.inodesFree: 12 available, threshold 5k" + remedy: pressureProblem(pressure.Conditions{Memory: true, Disk: true}, met).Message,
		"the node has the condition [PIDPressure]" + remedy: pressureProblem(pressure.Conditions{PIDs: true}, nil).Message,
	} {
		if p != want {
			t.Errorf("got  %s\nwant %s", p, want)
		}
	}
}
