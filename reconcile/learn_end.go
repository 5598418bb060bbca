package reconcile

import (
	"maps"
	"slices"
	"time"

	"podd/reconcile/plan"
	"podd/reconcile/status"
	"podd/runtime"
)

// learnStop knows of a container how it ended, or that the runtime has it no more.
func (w *worker) learnStop(a plan.StopContainer, f fact) {
	switch {
	case f.container != nil:
		w.in.Observed = withContainer(w.in.Observed, *f.container)
	case f.err == nil:
		w.in.Observed = withoutContainer(w.in.Observed, a.ID)
	}
}

// learnEnd takes out what was ended without an error.
func (w *worker) learnEnd(f fact) {
	switch a := f.action.(type) {
	case plan.RemoveContainer:
		w.in.Observed = withoutContainer(w.in.Observed, a.ID)
	case plan.StopSandbox:
		w.learnStopped(a.ID, f.containers)
	case plan.RemoveSandbox:
		w.in.Observed = withoutSandbox(w.in.Observed, a.ID)
	case plan.EndForeign:
		w.in.Observed = withoutSandbox(w.in.Observed, a.ID)
	case plan.ReleaseVolumes:
		dir := plan.Dir{UID: a.UID, Hash: w.hashOf(a.UID)}
		w.setDir(dir)
		w.in.History.VolumesReady = false
		w.rememberSoon(dir.UID, dir.Hash)
	case plan.RemoveDir:
		w.dropDir(a)
	}
}

// learnStopped marks a sandbox as ended with all that was in it.
func (w *worker) learnStopped(id string, ended []runtime.Container) {
	for _, c := range ended {
		w.in.Observed = withContainer(w.in.Observed, c)
	}
	released := maps.Clone(w.in.History.Released)
	if released == nil {
		released = map[string]bool{}
	}
	released[id] = true
	w.in.History.Released = released
	w.in.Observed = slices.Clone(w.in.Observed)
	for i := range w.in.Observed {
		if inc := &w.in.Observed[i]; inc.ID == id {
			inc.Ready = false
			inc.Containers = allExited(inc.Containers)
			if w.in.Desired != nil && inc.UID == w.in.Desired.UID {
				w.in.History.VolumesReady = false
			}
		}
	}
}

// allExited: stopping a sandbox ends its containers; how the ones ended that
// nobody looked at, the next observation tells.
func allExited(cs []runtime.Container) []runtime.Container {
	cs = slices.Clone(cs)
	for i := range cs {
		if cs[i].State == runtime.Running || cs[i].State == runtime.Unknown {
			cs[i].State = runtime.Exited
			cs[i].FinishedAt = time.Now()
			cs[i].ExitCode = 137
			cs[i].Reason = status.ContainerStatusUnknown
		}
	}
	return cs
}

func (w *worker) learnCleanup(f fact) {
	subject := f.action.Subject()
	before, known := w.in.History.Cleanup[subject]
	if f.err == nil {
		if known {
			w.in.History.Cleanup = maps.Clone(w.in.History.Cleanup)
			delete(w.in.History.Cleanup, subject)
		}
		return
	}
	w.in.History.Cleanup = with(w.in.History.Cleanup, subject, failed(before, f, ""))
}
