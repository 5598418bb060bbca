package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/reconcile/plan"
	"podd/runtime"
)

// applyOrder updates the desired pod, its objects, the node and the admission verdict, and
// applies the requests and the observation of the order.
func (w *worker) applyOrder(o order) {
	w.seq, w.runtimeName, w.render, w.userIDs = o.seq, o.runtimeName, o.render, o.userIDs
	if o.driverChanges != w.order.driverChanges {
		w.retryVolumes()
		w.retryCleanup()
	}
	w.order = o
	w.setDesired(o.desired)
	w.applySupplies()
	if o.observed {
		w.applyObservation(o.pod, o.asOf)
		if o.stale {
			w.requireObservation()
		}
	}
	if w.in.Verdict.Answer != plan.Admit && o.verdict.Answer == plan.Admit && w.hasObserved && len(w.in.Observed) == 0 {
		w.resetStartTime() // it only waited for its admission
	}
	w.in.SourcesRead, w.in.Verdict, w.in.Node, w.in.ForceStop = o.certain, o.verdict, o.node, o.forceStop
	w.in.Node.Reachable = o.node.Reachable && w.hasObserved
	w.in.Delete = o.deletion
	if e := o.evict; e != nil && (e.Reason != plan.Terminated || o.node.ShuttingDown) {
		w.in.Eviction = e
	}
	if o.reread != nil {
		w.applyReread(*o.reread)
	}
	for _, name := range o.restart {
		w.requestRestart(name)
	}
	for _, a := range o.additions {
		a.reply <- w.add(a)
	}
}

// setDesired sets the desired version: the same as before, its successor, or none if p is
// nil.
func (w *worker) setDesired(p *manifest.Pod) {
	switch {
	case p == nil:
		w.retainManifest()
		w.in.Desired, w.in.Successor = nil, nil
		if p := w.order.leaving; p != nil && (w.in.Previous == nil || sameVersion(p, w.in.Previous)) {
			w.in.Previous = p
		}
	case w.in.Desired == nil:
		w.setVersion(p)
	case sameVersion(p, w.in.Desired):
		p = w.withEphemeral(p)
		w.retryResize(p)
		w.in.Desired, w.in.Successor = p, nil
	case !w.hasObserved && p.Hash == w.in.Desired.Hash: // nothing was done for it yet, and it has another UID on this node
		w.setVersion(p)
	default:
		w.in.Successor = p
	}
}

// ofCluster reports whether the pod is of a cluster, which then also has its status and its
// ephemeral containers.
func ofCluster(p *manifest.Pod) bool { return p.Origin.Kind == manifest.KindAPI }

// sameVersion reports whether b can run in the sandbox of a. Their sizes may differ.
func sameVersion(a, b *manifest.Pod) bool { return a.UID == b.UID && a.Hash == b.Hash }

// retainManifest keeps the manifest of the version in force while something of it runs.
func (w *worker) retainManifest() {
	if w.in.Desired != nil {
		w.replaced = w.in.Desired
	}
	if isRunning(w.in.Observed, w.in.Desired) {
		w.in.Previous = w.in.Desired
	}
}

// setVersion makes p the version in force, with its recorded history.
func (w *worker) setVersion(p *manifest.Pod) {
	w.retainManifest()
	w.resetStartTime()
	w.finishing = nil
	old := w.in.History
	h := plan.History{Stopping: old.Stopping, Terminations: old.Terminations, Released: old.Released, Cleanup: old.Cleanup, VolumeCheck: old.VolumeCheck, Probed: old.Probed, StartTime: old.StartTime}
	if w.in.Desired != nil && w.in.Desired.UID == p.UID {
		h.SandboxAttempt = old.SandboxAttempt
	}
	h.Containers = map[string]plan.ContainerHistory{}
	for name, img := range old.Next {
		h.Containers[name] = plan.ContainerHistory{Image: img}
	}
	var added []v1.EphemeralContainer
	known := false // the start time is recorded
	if j, ok := w.past[p.UID]; ok && j.Hash == p.Hash {
		h.Sizes, added = j.Sizes, j.Ephemeral
		for id, probed := range j.Probed {
			if _, fresher := old.Probed[id]; !fresher {
				h.Probed = with(h.Probed, id, probed)
			}
		}
		if j.Finished.AppliesTo(p) {
			h.Finished = j.Finished
		}
		if !j.StartTime.IsZero() && (j.Finished == nil || h.Finished != nil) {
			w.startTime, h.StartTime, known = j.StartTime, j.started, true
		}
		for name, e := range j.Containers {
			c := h.Containers[name]
			c.Attempt, c.LastExit, c.RestartID, c.PostStart = e.Attempt, e.LastExit, e.RestartID, e.PostStart
			c.Restarts = e.Attempt - min(e.Skipped, e.Attempt)
			h.Containers[name] = c
			if e := e.LastExit; e != nil && e.MessageRead {
				h.TerminationMessages = with(h.TerminationMessages, e.ID, e.TerminationMessage)
			}
		}
	}
	if at := p.Spec.Status.StartTime; ofCluster(p) && at != nil {
		if w.startTime = at.Time; !known {
			h.StartTime = h.StartTime.Add(-max(h.StartTime.Sub(at.Time), 0))
		}
	}
	w.withoutEphemeral = p
	w.in.Desired, w.in.Successor, w.in.History, w.in.Eviction = p, nil, h, nil
	if !ofCluster(p) {
		w.in.Desired = p.WithEphemeral(added)
	}
	if w.dir(p.UID).Hash == "" && w.journals.has(p.UID) {
		// The journal is lost, or was never written.
		w.setDir(plan.Dir{UID: p.UID, Hash: w.dir(p.UID).Hash, Volumes: true})
	}
}

// resetStartTime sets the start time of the pod to now.
func (w *worker) resetStartTime() {
	now := time.Now()
	w.startTime, w.in.History.StartTime = now, now
}

// applyObservation replaces the observed state. An observation that was requested before
// the newest effect ended is dropped and requested again. That is urgent if a decision
// waits for it, or if something has ended that is recorded as running.
func (w *worker) applyObservation(p *runtime.Pod, asOf time.Time) {
	if !asOf.After(w.effectEnd) {
		w.requestObservation(w.in.Unobserved || !w.hasObserved || hasEnded(p, w.in.Observed))
		return
	}
	w.unconfirmed.Store(false)
	w.hasObserved, w.in.Unobserved = true, false
	var seen []runtime.Incarnation
	if p != nil {
		seen = w.takeOver(withExits(p.Incarnations, w.in.Observed))
	}
	w.recordLost(seen)
	w.in.Observed = seen
	w.addDirs()
}

// requireObservation keeps anything from being created under a new name until a newer
// observation: since the last one, another agent may have used the name.
func (w *worker) requireObservation() {
	w.in.Unobserved, w.effectEnd = true, time.Now()
	w.requestObservation(true)
}

// requestObservation requests an observation of the pod, and has the router pass it on even
// if the pod did not change.
func (w *worker) requestObservation(urgent bool) {
	w.unconfirmed.Store(true)
	w.refresh(w.key, urgent)
}

// hasEnded reports whether a sandbox or container of p, which is nil if the runtime has
// none, has ended and is recorded as ready or running.
func hasEnded(p *runtime.Pod, recorded []runtime.Incarnation) bool {
	if p == nil {
		return false
	}
	alive := map[string]bool{}
	for _, inc := range recorded {
		alive[inc.ID] = inc.Ready
		for _, c := range inc.Containers {
			alive[c.ID] = c.State == runtime.Running
		}
	}
	return slices.ContainsFunc(p.Incarnations, func(inc runtime.Incarnation) bool {
		return alive[inc.ID] && !inc.Ready || slices.ContainsFunc(inc.Containers, func(c runtime.Container) bool {
			return alive[c.ID] && c.State != runtime.Running
		})
	})
}

// addDirs records a directory for every observed pod of ours. Its journal may be lost, or
// podd may have been killed before it wrote one. A directory that was kept for the late
// call of an earlier podd is kept no longer, because what the call created is observed.
func (w *worker) addDirs() {
	for i := range w.in.Observed {
		inc := &w.in.Observed[i]
		if inc.Foreign {
			continue
		}
		at := slices.IndexFunc(w.in.Dirs, func(d plan.Dir) bool { return d.UID == inc.UID })
		switch {
		case at < 0:
			w.setDir(plan.Dir{UID: inc.UID, Hash: inc.Annotations[runtime.AnnotationHash], Volumes: true})
		case !w.in.Dirs[at].Keep.IsZero():
			dir := w.in.Dirs[at]
			dir.Keep = time.Time{}
			w.setDir(dir)
		}
	}
}

// requestRestart marks the containers that a user wants to restart: those that run or are
// in a crash back-off. The name "" means all.
func (w *worker) requestRestart(name string) {
	for i := range w.in.Observed {
		if !plan.Runs(w.in.Desired, &w.in.Observed[i]) {
			continue
		}
		newest := map[string]runtime.Container{}
		for _, c := range w.in.Observed[i].Containers {
			if c.Annotations[runtime.AnnotationEphemeral] != "" {
				continue // an ephemeral container is never started again
			}
			if last, ok := newest[c.Name]; !ok || c.Attempt > last.Attempt {
				newest[c.Name] = c
			}
		}
		for _, c := range newest {
			if (c.State == runtime.Running || w.isBackingOff(c.Name)) && (name == "" || name == c.Name) {
				w.container(c.Name, func(h *plan.ContainerHistory) { h.RestartID = c.ID })
			}
		}
	}
}

// isBackingOff reports whether the last decision held a container back after a crash.
func (w *worker) isBackingOff(container string) bool {
	return slices.ContainsFunc(w.reported.Steps, func(s plan.Step) bool { return s.Container == container && s.Crashes > 0 })
}

// handleResult applies the result of an action. It reports whether there is news, which
// most results of probes are not.
func (w *worker) handleResult(f effect.Result) (news bool) {
	if w.returned(f) {
		return true
	}
	fl := w.flights[f.Action.Subject()]
	fl.cancel()
	delete(w.flights, f.Action.Subject())
	if plan.IsHook(f.Action) && !isNamed(w.reported.Actions, f.Action) {
		return false // it was canceled
	}
	if a, ok := f.Action.(plan.Probe); ok {
		return !errors.Is(f.Err, context.Canceled) && w.applyProbe(a, f)
	}
	if a, ok := f.Action.(plan.ReadMessage); ok {
		message, _ := f.Value.(effect.Message)
		w.in.History.TerminationMessages = with(w.in.History.TerminationMessages, a.ID, message.Text)
		return true
	}
	// Results may arrive in another order than their effects ended.
	if plan.Observable(f.Action) {
		w.unconfirmed.Store(true)
		if f.Ended.After(w.effectEnd) {
			w.effectEnd = f.Ended
		}
	}
	f = w.redactedResult(f)
	w.events = append(w.events, w.outcomeEvents(f)...)
	ask := w.applyResult(f)
	if f.Err != nil && f.Supply != w.supply && f.Supply != w.nextSupply {
		w.retryAll() // the objects changed meanwhile
	}
	w.logResult(f, f.Ended.Sub(fl.since))
	if ask {
		w.requestObservation(true)
	}
	return true
}
