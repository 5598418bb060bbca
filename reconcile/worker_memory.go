package reconcile

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
	"podd/runtime"
)

// commit remembers what a decision wants remembered before its effects.
func (w *worker) commit(d plan.Decision) error {
	if d.Stopping != nil {
		w.in.History.Stopping = d.Stopping
		if inc := findSandbox(w.in.Observed, d.Stopping.SandboxID); inc != nil && inc.ID != "" && d.Stopping.Grace > 0 {
			w.rememberSoon(inc.UID, inc.Annotations[runtime.AnnotationHash])
		}
	}
	for id, e := range d.Endings {
		w.ending(id, e)
	}
	if d.Finished != nil {
		w.in.History.Finished = d.Finished
		if ofCluster(w.in.Desired) && len(w.in.Observed)+len(w.in.Dirs) == 0 {
			return nil // nothing of it is here; the cluster has its end, or it is found again
		}
		if err := w.remember(w.in.Desired.UID, w.in.Desired.Hash, true); err != nil {
			w.in.History.Finished = nil
			return err
		}
	}
	return nil
}

// rememberSoon is for what costs little when it is lost: a failure is logged,
// and mended by the next thing to remember.
func (w *worker) rememberSoon(uid types.UID, hash string) {
	if err := w.remember(uid, hash, false); err != nil {
		w.log.Warn("not remembered", "err", err)
	}
}

// remember writes the journal of one UID.
func (w *worker) remember(uid types.UID, hash string, durable bool) error {
	j := w.past[uid]
	if j.Hash != hash {
		j = journal{Taken: j.Taken}
	}
	j.Key, j.UID, j.Hash = w.key, uid, hash
	j.Stopping = nil
	if s := w.in.History.Stopping; s != nil {
		if inc := findSandbox(w.in.Observed, s.SandboxID); inc != nil && inc.UID == uid {
			j.Stopping = s
		}
	}
	j.Endings = w.endingsOf(uid)
	if p := w.in.Desired; p != nil && p.UID == uid && p.Hash == hash {
		j.StartTime, j.Finished = w.in.History.StartTime, w.in.History.Finished
		j.Containers = map[string]journalEntry{}
		j.Probed, j.Sizes = verdicts(w.in.History.Probed), w.in.History.Sizes
		j.Ephemeral = w.unmade()
		for name, h := range w.in.History.Containers {
			j.Containers[name] = journalEntry{Attempt: h.Attempt, LastExit: h.LastExit, RestartID: h.RestartID, PostStart: h.PostStart}
		}
	}
	dir := w.dir(uid)
	j.Volumes = dir.Volumes
	dir.Hash = hash
	w.setDir(dir)
	w.past = with(w.past, uid, j)
	return w.journals.write(j, durable)
}

// endingsOf are those of containers of a UID; nil for none.
func (w *worker) endingsOf(uid types.UID) map[string]plan.Ending {
	var kept map[string]plan.Ending
	for id, e := range w.in.History.Endings {
		if inc, _ := findRecord(w.in.Observed, id); inc != nil && inc.UID == uid {
			kept = with(kept, id, e)
		}
	}
	return kept
}

// forgetStopped ends a termination once nothing of its sandbox is left, which
// nobody knows before the runtime was seen: one taken over from an earlier life
// of podd goes on with the rest of its grace.
func (w *worker) forgetStopped() {
	s := w.in.History.Stopping
	if s == nil || !w.looked {
		return
	}
	for i := range w.in.Observed {
		if w.in.Observed[i].ID == s.SandboxID {
			return
		}
	}
	w.in.History.Stopping = nil
}

func (w *worker) dir(uid types.UID) plan.Dir {
	for _, d := range w.in.Dirs {
		if d.UID == uid {
			return d
		}
	}
	return plan.Dir{UID: uid}
}

func (w *worker) hashOf(uid types.UID) string { return w.dir(uid).Hash }

func (w *worker) setDir(d plan.Dir) {
	w.in.Dirs = append(slices.DeleteFunc(slices.Clone(w.in.Dirs), func(have plan.Dir) bool { return have.UID == d.UID }), d)
}

func (w *worker) dropDir(a plan.RemoveDir) {
	w.in.Dirs = slices.DeleteFunc(slices.Clone(w.in.Dirs), func(have plan.Dir) bool { return have.UID == a.UID })
	w.past = maps.Clone(w.past)
	delete(w.past, a.UID)
	if w.in.Desired != nil && w.in.Desired.UID == a.UID {
		w.in.History.VolumesReady = false
	}
}

// recall takes over what earlier lives of podd left about this name; late is
// until when a call of the last one may still have an effect: not on what had
// ended, or was being stopped.
func (w *worker) recall(past []journal, late time.Time) {
	w.past = map[types.UID]journal{}
	now := time.Now()
	for _, j := range past {
		w.past[j.UID] = j
		dir := plan.Dir{UID: j.UID, Hash: j.Hash, Volumes: j.Volumes, Keep: late}
		if j.Stopping != nil {
			stopping := *j.Stopping
			stopping.Since = anchored(stopping.Since, now)
			w.in.History.Stopping = &stopping
		}
		for id, e := range j.Endings {
			e.Since = anchored(e.Since, now)
			w.in.History.Endings = with(w.in.History.Endings, id, e)
		}
		if j.Stopping != nil || j.Finished != nil {
			dir.Keep = time.Time{}
		}
		w.in.Dirs = append(w.in.Dirs, dir)
	}
}
