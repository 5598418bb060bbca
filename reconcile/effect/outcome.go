package effect

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/runtime"
)

// An Outcome describes an effect that has ended, for metrics.
type Outcome struct {
	Key         types.NamespacedName
	Pod         *manifest.Pod // the version that the action belongs to; nil if unknown
	Action      plan.Action
	Took        time.Duration
	ProbePassed bool  // whether the attempt of a plan.RunProbe has passed
	Err         error // nil if the effect succeeded
	Canceled    bool  // whether Err is set because the action was canceled
	// SandboxCall is the last call of RunPodSandbox of a plan.RunSandbox; nil if there was none.
	SandboxCall *result.Call
	// Pull describes the pull of a plan.EnsureImage; nil if the image was not pulled.
	Pull *event.Pull
	// HookPlainHost is result.CalledHook.PlainHost of a hook.
	HookPlainHost string
	// Reason is the waiting reason of a failed plan.StartContainer or plan.EnsureImage.
	Reason string
}

// newOutcome returns the Outcome for r, a result of an action on the pod with the name key.
func newOutcome(key types.NamespacedName, r *result.Result) Outcome {
	o := Outcome{Key: key, Pod: r.Version, Action: r.Action, Took: r.Ended.Sub(r.Began), Err: r.Err, Canceled: r.Canceled}
	switch v := r.Value.(type) {
	case result.ProbeAttempt:
		o.ProbePassed = v.Passed
	case result.CreatedSandbox:
		o.SandboxCall = v.Call
	case result.CalledHook:
		o.HookPlainHost = v.PlainHost
	case result.EnsuredImage:
		o.Pull = v.Pull
		if pull, ok := errors.AsType[*runtime.PullError](r.Err); ok {
			o.Reason = pull.Reason
		}
	case result.StartedContainer:
		if r.Err != nil {
			o.Reason = result.StartReason(r.Err)
		}
	}
	return o
}
