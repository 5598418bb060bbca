package plan

import "cmp"

// windDown ends sidecars and the sandbox of a finished pod and releases its
// volumes; then the pod rests, its records and logs kept.
func (f *facts) windDown(d *Decision) {
	if !f.in.History.Finished.Of(f.wanted) {
		// Whoever hears of the end hears why.
		if f.readMessages(d) {
			return
		}
		d.Finished = f.outcome()
	}
	why := "the pod has finished"
	if fin := cmp.Or(d.Finished, f.in.History.Finished); fin != nil && fin.Reason != "" {
		d.Why, d.Reason, d.Problem = fin.Message, fin.Reason, fin.Reason != Terminated
		if !d.Problem {
			why = "the node is shutting down"
		}
	}
	if f.startsInFlight() {
		return
	}
	if f.cur != nil && (Live(f.cur) || f.volumesHeld() && !f.in.History.Released[f.cur.ID]) {
		fin := cmp.Or(d.Finished, f.in.History.Finished)
		f.stopMembers(d, f.cur, term{since: fin.At, grace: graceAt(f.cur, fin), why: why})
		return
	}
	if f.volumesHeld() {
		f.clean(d, ReleaseVolumes{UID: f.in.Desired.UID})
		return
	}
	d.Phase, d.Resume = PhaseRest, f.resumes()
}

func (f *facts) volumesHeld() bool {
	for _, dir := range f.in.Dirs {
		if dir.UID == f.in.Desired.UID && dir.Volumes {
			return true
		}
	}
	return false
}
