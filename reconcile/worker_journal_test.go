package reconcile

import (
	"testing"
	"time"

	"podd/reconcile/plan"
)

// TestNextRetry checks that the worker wakes for the retry of a write, unless the directory
// is being removed: then the result of that wakes the worker.
func TestNextRetry(t *testing.T) {
	w, _ := bare(barePod("app"))
	past, later := time.Now().Add(-time.Minute), time.Now().Add(time.Minute)
	w.unwritten = with(w.unwritten, "u", failedWrite{Failure: plan.Failure{Count: 1, Until: past}})
	if at := w.nextRetry(later); !at.Equal(past) {
		t.Errorf("the next write is at %s, want %s", at, past)
	}
	remove := plan.RemoveDir{UID: "u"}
	w.flights[remove.Subject()] = flight{action: remove}
	if at := w.nextRetry(later); !at.Equal(later) {
		t.Errorf("during the removal the next write is at %s, want none before %s", at, later)
	}
}
