package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/admission"
	"podd/reconcile/state"
	"podd/runtime"
)

// entry is the router's record of one worker.
type entry struct {
	worker      *worker
	cancel      context.CancelFunc
	ended       chan struct{}
	memory      admission.Memory // with the last order that was posted
	seq         uint64           // of the last message posted; 0 if there is none
	firstSeq    uint64           // seq of the first message with an observation; 0 if there is none yet
	observation *runtime.Pod     // the newest observation posted to the worker
	past        []state.Record
	report      *state.Report // the newest one; nil before the first
	reportSeq   uint64        // seq of the newest message that the worker had received then
}

// hasObservation reports whether p is the newest observation of the worker. The observer
// keeps the pointer of a pod that did not change.
func (e *entry) hasObservation(p *runtime.Pod) bool { return e.firstSeq > 0 && e.observation == p }

// hasReported reports whether the worker has reported on its first observation.
func (e *entry) hasReported() bool {
	return e.report != nil && e.firstSeq > 0 && e.reportSeq >= e.firstSeq
}

// name returns what admission needs to know of a name. last is its newest observation.
func (e *entry) name(key types.NamespacedName, last *runtime.Pod) admission.Name {
	return admission.Name{Key: key, Memory: e.memory, Report: e.report, Reported: e.hasReported(), Observed: last, Past: e.past}
}

// isFinished reports whether the pod has terminated and nothing but its records is left.
func (e *entry) isFinished() bool {
	n := admission.Name{Report: e.report}
	return n.IsFinished()
}
