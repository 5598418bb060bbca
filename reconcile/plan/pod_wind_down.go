package plan

import "cmp"

// windDown stops sidecars and the sandbox of a finished pod and releases its volumes. Then
// the pod rests; its records and logs are kept.
func (f *facts) windDown(d *Decision) {
	if !f.in.History.Finished.AppliesTo(f.desired) {
		fin := f.outcome()
		d.RecordFirst = f.mustRecord(fin)
		// The end is published with the containers' messages, unless it is urgent.
		if d.RecordFirst && f.readMessages(d) {
			return
		}
		d.Finished = fin
	}
	why := "the pod has finished"
	if fin := cmp.Or(d.Finished, f.in.History.Finished); fin != nil && fin.Reason != "" {
		d.Why, d.Reason, d.Problem = fin.Message, fin.Reason, fin.Reason != Terminated
		if !d.Problem {
			why = "the node is shutting down"
		}
	}
	if f.cancelStarts(d) {
		return
	}
	if f.cur != nil && (IsLive(f.cur) || f.volumesHeld() && !f.in.History.Released[f.cur.ID]) {
		fin := cmp.Or(d.Finished, f.in.History.Finished)
		f.stopMembers(d, f.cur, stopBudget{since: fin.At, grace: graceAt(f.cur, fin), why: why})
		return
	}
	if f.in.DirsInUse[f.in.Desired.UID] {
		return
	}
	if f.volumesHeld() {
		f.doCleanup(d, ReleaseVolumes{UID: f.in.Desired.UID})
		return
	}
	d.Phase, d.Resume = PhaseRest, f.resumes()
}

// mustRecord reports whether an end must be on disk before the next step. That is so if the
// pod ended by itself: if its end were published but not recorded, it would run again. Other
// ends follow again from their cause, or their loss is harmless, and they may be what frees the
// disk; see evictGrace, deadline and terminated. While one of them is due, the end of a pod
// that ended by itself does not wait either: it follows again from the runtime's records.
func (f *facts) mustRecord(fin *Finished) bool {
	return fin.Reason == "" && !f.in.Desired.FinishedAtSource() && !f.urgent()
}

// urgent reports whether what is left of the pod must stop now.
func (f *facts) urgent() bool {
	return f.in.ForceStop || f.in.Eviction.evicts(f.in.Desired) || f.overDeadline()
}

func (f *facts) volumesHeld() bool {
	for _, dir := range f.in.Dirs {
		if dir.UID == f.in.Desired.UID && dir.Volumes {
			return true
		}
	}
	return false
}
