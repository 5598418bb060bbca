package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

func (w *worker) obey(o order) {
	w.seq, w.runtimeName, w.render, w.userIDs = o.seq, o.runtime, o.render, o.userIDs
	if o.drivers != w.order.drivers {
		w.tryVolumes()
		w.tryCleanup()
	}
	w.order = o
	w.want(o.desired)
	w.look()
	if o.seen {
		w.observe(o.pod, o.asOf)
		if o.stale {
			w.lookAgain()
		}
	}
	if w.in.Verdict.Answer != plan.Admit && o.verdict.Answer == plan.Admit && len(w.in.Observed) == 0 {
		w.in.History.StartTime = time.Now() // it only waited until now
	}
	w.in.Certain, w.in.Verdict, w.in.Node, w.in.Hurry = o.certain, o.verdict, o.node, o.hurry
	w.in.Node.Reachable = o.node.Reachable && w.looked
	w.in.Delete = o.deletes
	if e := o.evict; e != nil && (e.Reason != plan.Terminated || o.node.ShuttingDown) {
		w.in.Evict = e
	}
	for _, name := range o.restart {
		w.askRestart(name)
	}
	for _, a := range o.added {
		a.reply <- w.add(a)
	}
}

// want takes a wanted version: the same, the next one, or none.
func (w *worker) want(p *manifest.Pod) {
	switch {
	case p == nil:
		w.leave()
		w.in.Desired, w.in.Successor = nil, nil
		if p := w.order.leaving; p != nil && (w.in.Leaving == nil || sameVersion(p, w.in.Leaving)) {
			w.in.Leaving = p
		}
	case w.in.Desired == nil:
		w.begin(p)
	case sameVersion(p, w.in.Desired):
		p = w.added(p)
		w.resizeAnew(p)
		w.in.Desired, w.in.Successor = p, nil
	case !w.looked && p.Hash == w.in.Desired.Hash: // nothing was done of it, and the machine knows it by another UID
		w.begin(p)
	default:
		w.in.Successor = p
	}
}

// ofCluster says that a cluster has the pod, with its status and its ephemeral
// containers.
func ofCluster(p *manifest.Pod) bool { return p.Origin.Kind == manifest.KindAPI }

// sameVersion: what runs of a need not be ended for b, which may have another size.
func sameVersion(a, b *manifest.Pod) bool { return a.UID == b.UID && a.Hash == b.Hash }

// leave keeps the manifest of the version in force while something of it runs.
func (w *worker) leave() {
	if listed(w.in.Observed, w.in.Desired) {
		w.in.Leaving = w.in.Desired
	}
}

// begin makes p the version in force, with what is remembered of it.
func (w *worker) begin(p *manifest.Pod) {
	w.leave()
	old := w.in.History
	h := plan.History{Stopping: old.Stopping, Endings: old.Endings, Released: old.Released, Cleanup: old.Cleanup, Checked: old.Checked, Probed: old.Probed, StartTime: time.Now()}
	h.Containers = map[string]plan.ContainerHistory{}
	for name, img := range old.Next {
		h.Containers[name] = plan.ContainerHistory{Image: img}
	}
	var added []v1.EphemeralContainer
	if j, ok := w.past[p.UID]; ok && j.Hash == p.Hash {
		h.Sizes, added = j.Sizes, j.Ephemeral
		for id, probed := range j.Probed {
			if _, fresher := old.Probed[id]; !fresher {
				h.Probed = with(h.Probed, id, probed)
			}
		}
		if j.Finished.Of(p) {
			fin := *j.Finished
			fin.At = anchored(fin.At, h.StartTime)
			h.Finished = &fin
		}
		if !j.StartTime.IsZero() && (j.Finished == nil || h.Finished != nil) {
			h.StartTime = anchored(j.StartTime, h.StartTime)
		}
		for name, e := range j.Containers {
			c := h.Containers[name]
			c.Attempt, c.LastExit, c.RestartID, c.PostStart = e.Attempt, e.LastExit, e.RestartID, e.PostStart
			h.Containers[name] = c
			if e := e.LastExit; e != nil && e.Told {
				h.Said = with(h.Said, e.ID, e.Said)
			}
		}
	}
	if at := p.Spec.Status.StartTime; ofCluster(p) && at != nil {
		h.StartTime = anchored(at.Time, h.StartTime)
	}
	w.bare = p
	w.in.Desired, w.in.Successor, w.in.History, w.in.Evict = p, nil, h, nil
	if !ofCluster(p) {
		w.in.Desired = p.WithEphemeral(added)
	}
	if w.dir(p.UID).Hash == "" && w.journals.has(p.UID) {
		// Its journal is lost, or was never written.
		w.setDir(plan.Dir{UID: p.UID, Hash: w.dir(p.UID).Hash, Volumes: true})
	}
}

// observe takes what the runtime says, unless it was asked before the newest
// effect ended: then it is asked again.
func (w *worker) observe(p *runtime.Pod, asOf time.Time) {
	if !asOf.After(w.effectEnd) {
		w.refresh(w.key)
		return
	}
	w.looked, w.in.Unseen = true, false
	var seen []runtime.Incarnation
	if p != nil {
		seen = w.takeOver(withExits(p.Incarnations, w.in.Observed))
	}
	w.in.Observed = seen
	w.ownDirs()
}

// lookAgain has nothing made under a new name on the word of a look at the
// runtime that is older than the wish: somebody else may have taken it since.
func (w *worker) lookAgain() {
	w.in.Unseen, w.effectEnd = true, time.Now()
	w.refresh(w.key)
}

// ownDirs takes every pod of ours that is seen to have a directory: its journal
// may be lost, or podd may have been killed between the two. What an earlier
// call was to make is there.
func (w *worker) ownDirs() {
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

// askRestart remembers which containers a user wants started again: those that
// run, or are held back after a crash; "" is all.
func (w *worker) askRestart(name string) {
	for i := range w.in.Observed {
		if !plan.Runs(w.in.Desired, &w.in.Observed[i]) {
			continue
		}
		newest := map[string]runtime.Container{}
		for _, c := range w.in.Observed[i].Containers {
			if c.Annotations[runtime.AnnotationEphemeral] != "" {
				continue // it is never started again
			}
			if last, ok := newest[c.Name]; !ok || c.Attempt > last.Attempt {
				newest[c.Name] = c
			}
		}
		for _, c := range newest {
			if (c.State == runtime.Running || w.backsOff(c.Name)) && (name == "" || name == c.Name) {
				w.container(c.Name, func(h *plan.ContainerHistory) { h.RestartID = c.ID })
			}
		}
	}
}

// backsOff tells whether the last decision held a container back.
func (w *worker) backsOff(container string) bool {
	return slices.ContainsFunc(w.told.Steps, func(s plan.Step) bool { return s.Container == container && s.Crashes > 0 })
}

// take learns what came of an action, and tells whether it is news: what a
// probe says seldom is.
func (w *worker) take(f fact) (news bool) {
	fl := w.flights[f.action.Subject()]
	fl.cancel()
	delete(w.flights, f.action.Subject())
	if plan.IsHook(f.action) && !named(w.told.Actions, f.action) {
		return false // it was given up
	}
	if a, ok := f.action.(plan.Probe); ok {
		return !errors.Is(f.err, context.Canceled) && w.learnProbe(a, f)
	}
	if a, ok := f.action.(plan.ReadMessage); ok {
		w.in.History.Said = with(w.in.History.Said, a.ID, f.said)
		return true
	}
	// Facts can come in another order than their effects ended in.
	if plan.Observable(f.action) && f.ended.After(w.effectEnd) {
		w.effectEnd = f.ended
	}
	w.events = append(w.events, w.did(f)...)
	ask := w.learn(f)
	if f.err != nil && f.supply != w.supply && f.supply != w.nextSupply {
		w.tryAnew() // the objects changed meanwhile
	}
	w.logFact(f, f.ended.Sub(fl.since))
	if ask {
		w.refresh(w.key)
	}
	return true
}
