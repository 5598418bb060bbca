package plan

import (
	"encoding/json"
	"errors"

	"podd/manifest"
	"podd/runtime"
)

// preStopText returns the annotation for the preStop hook of a container.
func preStopText(p *manifest.Pod, container string) string {
	for _, c := range containersOf(&p.Object.Spec) {
		if c.Name == container && c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
			text, err := json.Marshal(c.Lifecycle.PreStop)
			if err != nil {
				panic(err)
			}
			return string(text)
		}
	}
	return ""
}

// recordHook records the state of a postStart hook in the history and the journal.
func (w *world) recordHook(container string, h PostStartState) {
	w.container(container, func(ch *ContainerHistory) { ch.PostStart = h })
	w.hooks[w.in.Desired.Hash+container] = h
}

// noteHook records when a container with a postStart hook was first observed running.
func (w *world) noteHook(c *runtime.Container) {
	h := w.in.History.Containers[c.Name].PostStart
	if c.State == runtime.Running && h.Due && h.Attempt == c.Attempt && h.Since.IsZero() {
		h.Since = w.in.Now
		w.container(c.Name, func(ch *ContainerHistory) { ch.PostStart = h })
	}
}

// applyHook applies the result of a hook; errLost means that the runtime did not respond.
func (w *world) applyHook(a Action, p *manifest.Pod, err error) {
	if errors.Is(err, errLost) {
		w.in.History.CleanupFailures = with(w.in.History.CleanupFailures, a.Subject(), w.failure(w.in.History.CleanupFailures[a.Subject()], err))
		return
	}
	switch a := a.(type) {
	case RunPreStop:
		e := w.in.History.Terminations[a.ID]
		e.HookDone = true
		w.in.History.Terminations = with(w.in.History.Terminations, a.ID, e)
	case RunPostStart:
		h := w.in.History.Containers[a.Container].PostStart
		if p != w.in.Desired || !h.Due || h.Attempt != a.Attempt {
			return
		}
		if h.Due = false; err != nil {
			h.Failed, h.Message = true, err.Error()
		}
		w.recordHook(a.Container, h)
	}
	w.applyCleanup(a, nil)
}
