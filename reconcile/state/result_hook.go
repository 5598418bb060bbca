package state

import (
	"errors"

	"podd/manifest/wording"
	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/runtime"
)

// applyHook records the result of a hook. If the runtime did not respond, the hook may not have
// run, and will be called again. observe reports whether a new observation is required.
func (t *transition) applyHook(f result.Result) (observe bool) {
	if errors.Is(f.Err, runtime.ErrUnavailable) {
		t.applyCleanup(f)
		return true
	}
	switch a := f.Action.(type) {
	case plan.RunPostStart:
		t.applyPostStart(a, f)
	case plan.RunPreStop:
		e := t.PlanInput.History.Terminations[a.ID]
		e.HookDone = true
		t.setTermination(a.ID, e)
	}
	return f.Err != nil
}

// applyPostStart records the result of a postStart hook.
func (t *transition) applyPostStart(a plan.RunPostStart, f result.Result) {
	h := t.PlanInput.History.Containers[a.Container].PostStart
	if !f.IsFor(t.PlanInput.Desired) || !h.Due || h.Attempt != a.Attempt {
		return
	}
	if h.Due = false; f.Err != nil {
		h.Failed, h.Message = true, wording.FirstLine(f.Err.Error())
	}
	t.setPostStart(a.Container, h)
}

// setPostStart sets the state of a container's postStart hook and writes the journal.
func (t *transition) setPostStart(container string, h plan.PostStartState) {
	t.changeContainer(container, func(c *plan.ContainerHistory) { c.PostStart = h })
	t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash)
}

// setTermination records the termination of the container with ID id and writes the journal.
func (t *transition) setTermination(id string, e plan.Termination) {
	t.PlanInput.History.Terminations = withKey(t.PlanInput.History.Terminations, id, e)
	if inc, _ := runtime.FindContainer(t.PlanInput.Observed, id); inc != nil && inc.ID != "" {
		t.addWrite(inc.UID, inc.Annotations[runtime.AnnotationPodHash])
	}
}
