package reconcile

import (
	"errors"
	"time"

	"podd/reconcile/effect"
	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/reconcile/status"
	"podd/runtime"
)

// applyHook records the result of a hook. The hook is called again only if the runtime did
// not respond, because then it is not known whether it was called at all.
func (w *worker) applyHook(f effect.Result) (ask bool) {
	if errors.Is(f.Err, runtime.ErrUnavailable) {
		w.applyCleanup(f)
		return true
	}
	switch a := f.Action.(type) {
	case plan.PostStart:
		w.applyPostStart(a, f)
	case plan.PreStop:
		e := w.in.History.Terminations[a.ID]
		e.Hooked = true
		w.setEnding(a.ID, e)
	}
	return f.Err != nil
}

func (w *worker) applyPostStart(a plan.PostStart, f effect.Result) {
	h := w.in.History.Containers[a.Container].PostStart
	if !f.IsFor(w.in.Desired) || !h.Owed || h.Attempt != a.Attempt {
		return
	}
	if h.Owed = false; f.Err != nil {
		h.Failed, h.Message = true, probe.Line(f.Err.Error())
	}
	w.setPostStart(a.Container, h)
}

// setPostStart sets the state of a container's postStart hook and writes the journal.
func (w *worker) setPostStart(container string, h plan.Hook) {
	w.container(container, func(c *plan.ContainerHistory) { c.PostStart = h })
	w.tryWriteJournal(w.in.Desired.UID, w.in.Desired.Hash)
}

// setEnding sets the ending of a container and writes the journal.
func (w *worker) setEnding(id string, e plan.Termination) {
	w.in.History.Terminations = with(w.in.History.Terminations, id, e)
	if inc, _ := runtime.FindContainer(w.in.Observed, id); inc != nil && inc.ID != "" {
		w.tryWriteJournal(inc.UID, inc.Annotations[runtime.AnnotationHash])
	}
}

// recordHookStart records when a container with a due postStart hook was first observed to
// run.
func (w *worker) recordHookStart(c *runtime.Container, now time.Time) {
	h := w.in.History.Containers[c.Name].PostStart
	if c.State == runtime.Running && h.Owed && h.Attempt == c.Attempt && h.Since.IsZero() {
		h.Since = now
		w.container(c.Name, func(ch *plan.ContainerHistory) { ch.PostStart = h })
	}
}

// addHookFacts marks the running containers with a postStart hook that has not finished. As
// with a kubelet, their status is waiting.
func (w *worker) addHookFacts(f *status.Facts) {
	if f.Failed != nil || f.Finished != "" {
		return // the status must show the containers that still run
	}
	for i := range w.in.Observed {
		if !plan.Runs(f.Pod, &w.in.Observed[i]) {
			continue
		}
		for j := range w.in.Observed[i].Containers {
			c := &w.in.Observed[i].Containers[j]
			spec, _, _ := plan.FindContainer(f.Pod.Spec, c.Name)
			if spec == nil || !w.in.History.Containers[c.Name].PostStart.Pending(spec, c, w.in.Now) {
				continue
			}
			facts := f.Containers[c.Name]
			facts.Starting = true
			f.Containers[c.Name] = facts
		}
	}
}
