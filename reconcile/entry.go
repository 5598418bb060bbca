package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/admission"
	"podd/reconcile/state"
	"podd/runtime"
)

// A workerEntry contains the router's data about the worker of one name.
type workerEntry struct {
	worker      *worker
	cancel      context.CancelFunc
	workerDone  chan struct{}    // closed when the worker has returned
	memory      admission.Memory // includes the last posted order
	seq         uint64           // sequence number of the last posted message; 0 if there is none
	firstSeq    uint64           // seq of the first message with an observation; 0 if there is none yet
	observation *runtime.Pod     // the newest observation posted to the worker
	pastRecords []state.Record   // journals of the name, as read when podd started
	report      *state.Report    // the newest report; nil before the first report
	reportSeq   uint64           // seq of the newest message that the worker had received when it sent the report
}

// hasObservation reports whether p is the newest observation posted to the worker. It compares
// pointers, because the observer reuses the pointer of a pod that did not change.
func (e *workerEntry) hasObservation(p *runtime.Pod) bool {
	return e.firstSeq > 0 && e.observation == p
}

// hasReported reports whether the worker has reported on its first observation.
func (e *workerEntry) hasReported() bool {
	return e.report != nil && e.firstSeq > 0 && e.reportSeq >= e.firstSeq
}

// nameFacts returns the facts about a name that admission needs. observed is the newest observation
// of the name, or nil.
func (e *workerEntry) nameFacts(key types.NamespacedName, observed *runtime.Pod) admission.NameFacts {
	return admission.NameFacts{Key: key, Memory: e.memory, Report: e.report, HasReported: e.hasReported(), Observed: observed, PastRecords: e.pastRecords}
}

// isFinished reports whether the pod has terminated and only its records and logs remain.
func (e *workerEntry) isFinished() bool {
	n := admission.NameFacts{Report: e.report}
	return n.IsFinished()
}
