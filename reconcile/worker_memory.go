package reconcile

import (
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
	"podd/runtime"
)

// commit records what a decision requires to be written before its effects. It returns an
// error if the end of the pod must not be published yet.
func (w *worker) commit(d plan.Decision) error {
	if d.Stopping != nil {
		w.in.History.Stopping = d.Stopping
		if inc := runtime.FindSandbox(w.in.Observed, d.Stopping.SandboxID); inc != nil && inc.ID != "" && d.Stopping.Grace > 0 {
			w.tryWriteJournal(inc.UID, inc.Annotations[runtime.AnnotationHash])
		}
	}
	for id, e := range d.Terminations {
		w.setEnding(id, e)
	}
	switch {
	case !d.RecordFirst:
		w.dropEnd(d)
		return nil
	case d.Finished == nil:
		return nil
	}
	return w.recordEnd(d.Finished)
}

// recordEnd sets the end of the pod to fin once the journal contains it, and returns an
// error until then. A write that takes too long counts when it ends.
func (w *worker) recordEnd(fin *plan.Finished) error {
	if w.finishing != nil {
		undated := *fin
		undated.At = w.finishing.At
		if undated == *w.finishing {
			fin = w.finishing
		}
	}
	w.finishing = fin
	p := w.in.Desired
	if w.past[p.UID].Finished != fin {
		if err := w.writeJournal(p.UID, p.Hash); err != nil {
			return err
		}
	}
	if failed, is := w.unwritten[p.UID]; is {
		return errors.New(failed.Message) // retryWrites retries
	}
	w.in.History.Finished, w.finishing = fin, nil
	return nil
}

// dropEnd replaces an end that waits for the journal by that of the decision, if it has
// one.
func (w *worker) dropEnd(d plan.Decision) {
	waited := w.finishing != nil
	w.finishing = nil
	if d.Finished != nil {
		w.in.History.Finished = d.Finished // see commitLate
	} else if waited && w.in.Desired != nil {
		w.tryWriteJournal(w.in.Desired.UID, w.in.Desired.Hash) // the journal may have the dropped end
	}
}

// commitLate writes the end of a pod that does not wait for the journal: its effects are in
// progress already, even if the disk does not respond.
func (w *worker) commitLate(d plan.Decision) {
	if d.Finished == nil || d.RecordFirst {
		return
	}
	if ofCluster(w.in.Desired) && len(w.in.Observed)+len(w.in.Dirs) == 0 {
		return // the node has nothing of it; the cluster has its end, or podd decides it again
	}
	w.tryWriteJournal(w.in.Desired.UID, w.in.Desired.Hash)
}

// endingsOf returns the endings of the containers of a UID; nil if there are none.
func (w *worker) endingsOf(uid types.UID) map[string]plan.Termination {
	var kept map[string]plan.Termination
	for id, e := range w.in.History.Terminations {
		if inc, _ := runtime.FindContainer(w.in.Observed, id); inc != nil && inc.UID == uid {
			kept = with(kept, id, e)
		}
	}
	return kept
}

// forgetStopped forgets a termination once its sandbox is gone. Before the runtime was
// observed that is not known: a termination that an earlier podd began continues with the
// rest of its grace.
func (w *worker) forgetStopped() {
	s := w.in.History.Stopping
	if s == nil || !w.hasObserved {
		return
	}
	if runtime.FindSandbox(w.in.Observed, s.SandboxID) == nil {
		w.in.History.Stopping = nil
	}
}

// dir returns the record of the directory of a UID.
func (w *worker) dir(uid types.UID) plan.Dir {
	for _, d := range w.in.Dirs {
		if d.UID == uid {
			return d
		}
	}
	return plan.Dir{UID: uid}
}

// hashOf returns the hash of the version that the directory of a UID was made for.
func (w *worker) hashOf(uid types.UID) string { return w.dir(uid).Hash }

// setDir adds or replaces the record of a directory.
func (w *worker) setDir(d plan.Dir) {
	w.in.Dirs = append(slices.DeleteFunc(slices.Clone(w.in.Dirs), func(have plan.Dir) bool { return have.UID == d.UID }), d)
}

// dropDir forgets a directory that was removed.
func (w *worker) dropDir(a plan.RemoveDir) {
	w.in.Dirs = slices.DeleteFunc(slices.Clone(w.in.Dirs), func(have plan.Dir) bool { return have.UID == a.UID })
	w.past = maps.Clone(w.past)
	delete(w.past, a.UID)
	delete(w.unwritten, a.UID)
	if w.in.Desired != nil && w.in.Desired.UID == a.UID {
		w.in.History.VolumesReady = false
	}
}

// restore sets the worker's state from the journals of earlier podds. Until late, a call of
// the last podd may still create something. That does not apply to pods that had ended or
// were being stopped.
func (w *worker) restore(past []journal, late time.Time) {
	w.past = map[types.UID]journal{}
	for _, j := range past {
		w.past[j.UID] = j
		dir := plan.Dir{UID: j.UID, Hash: j.Hash, Volumes: j.Volumes, Keep: late}
		if j.Stopping != nil {
			w.in.History.Stopping = j.Stopping
		}
		for id, e := range j.Terminations {
			w.in.History.Terminations = with(w.in.History.Terminations, id, e)
		}
		if j.Stopping != nil || j.Finished != nil {
			dir.Keep = time.Time{}
		}
		w.in.Dirs = append(w.in.Dirs, dir)
	}
}
