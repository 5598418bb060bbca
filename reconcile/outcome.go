package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/reconcile/plan"
)

// Outcome is what came of an effect, for those who count.
type Outcome struct {
	Key    types.NamespacedName
	Pod    *manifest.Pod // the version it was for; nil when that is not known
	Action plan.Action
	Took   time.Duration
	Passed bool  // of a plan.Probe
	Err    error // nil when it succeeded
	// Pull is how a plan.EnsureImage fetched the image; nil: it did not.
	Pull *event.Pull
	// Reason is what a status calls the failure of a plan.StartContainer.
	Reason string
}

func (f *fact) outcome(key types.NamespacedName) Outcome {
	o := Outcome{Key: key, Pod: f.version, Action: f.action, Took: f.ended.Sub(f.began), Passed: f.probe.Passed, Pull: f.pull, Err: f.err}
	if _, ok := f.action.(plan.StartContainer); ok && f.err != nil {
		o.Reason = startReason(f.err)
	}
	return o
}
