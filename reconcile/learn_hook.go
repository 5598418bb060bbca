package reconcile

import (
	"errors"
	"time"

	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/reconcile/status"
	"podd/runtime"
)

// learnHook takes what came of a hook. It is made again only where the runtime
// did not answer: then nobody knows whether it was made at all.
func (w *worker) learnHook(f fact) (ask bool) {
	if errors.Is(f.err, runtime.ErrUnavailable) {
		w.learnCleanup(f)
		return true
	}
	switch a := f.action.(type) {
	case plan.PostStart:
		w.learnPostStart(a, f)
	case plan.PreStop:
		e := w.in.History.Endings[a.ID]
		e.Hooked = true
		w.ending(a.ID, e)
	}
	return f.err != nil
}

func (w *worker) learnPostStart(a plan.PostStart, f fact) {
	h := w.in.History.Containers[a.Container].PostStart
	if !f.of(w.in.Desired) || !h.Owed || h.Attempt != a.Attempt {
		return
	}
	if h.Owed = false; f.err != nil {
		h.Failed, h.Message = true, probe.Line(f.err.Error())
	}
	w.owe(a.Container, h)
}

// owe remembers the hook of a container that is to start, or what came of it.
func (w *worker) owe(container string, h plan.Hook) {
	w.container(container, func(c *plan.ContainerHistory) { c.PostStart = h })
	w.rememberSoon(w.in.Desired.UID, w.in.Desired.Hash)
}

// ending remembers the end of a container.
func (w *worker) ending(id string, e plan.Ending) {
	w.in.History.Endings = with(w.in.History.Endings, id, e)
	if inc, _ := findRecord(w.in.Observed, id); inc != nil && inc.ID != "" {
		w.rememberSoon(inc.UID, inc.Annotations[runtime.AnnotationHash])
	}
}

// noteHook takes the moment at which a container that owes a hook was seen to run.
func (w *worker) noteHook(c *runtime.Container, now time.Time) {
	h := w.in.History.Containers[c.Name].PostStart
	if c.State == runtime.Running && h.Owed && h.Attempt == c.Attempt && h.Since.IsZero() {
		h.Since = now
		w.container(c.Name, func(ch *plan.ContainerHistory) { ch.PostStart = h })
	}
}

// tellHooks adds which of the containers that run have not started for others: as
// with a kubelet they are waiting until their postStart hook is over.
func (w *worker) tellHooks(f *status.Facts) {
	if f.Failed != nil || f.Finished != "" {
		return // what still runs must be seen to
	}
	for i := range w.in.Observed {
		if !plan.Runs(f.Pod, &w.in.Observed[i]) {
			continue
		}
		for j := range w.in.Observed[i].Containers {
			c := &w.in.Observed[i].Containers[j]
			spec, _, _ := findContainer(f.Pod.Spec, c.Name)
			if spec == nil || !w.in.History.Containers[c.Name].PostStart.Pending(spec, c, w.in.Now) {
				continue
			}
			facts := f.Containers[c.Name]
			facts.Starting = true
			f.Containers[c.Name] = facts
		}
	}
}

// anchored is a moment of an earlier life of podd, measured back from now by the
// monotonic clock from here on: whatever the wall clock does, no wait grows.
func anchored(then, now time.Time) time.Time {
	if then.IsZero() {
		return then
	}
	return now.Add(-max(now.Sub(then), 0))
}
