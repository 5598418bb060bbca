package plan

// objectsMissing: what runs was started when it was all there, and runs on.
func (f *facts) objectsMissing() bool {
	return f.in.Objects.Missing != "" && (f.cur == nil || !f.cur.Ready)
}

func (f *facts) waitObjects(d *Decision) {
	if f.in.Objects.Soon { // images may need what is not known yet, too
		d.Why = f.in.Objects.Missing
		return
	}
	d.Why = f.in.Objects.Missing + "; the pod starts when it is there"
	d.Problem, d.Reason = true, f.in.Objects.Reason
	f.prefetch(d)
}

// tellMissing shows what a running pod would not start without.
func (f *facts) tellMissing(d *Decision) {
	if f.in.Objects.Missing != "" && !f.in.Objects.Soon {
		d.Why, d.Problem = f.in.Objects.Missing+"; the pod runs on with what it has of it", true
	}
}

// updateVolumes keeps the files of a running pod at what its objects hold. What
// they have is on disk and nowhere else: a podd that starts anew looks once, when all is
// looked up. Volumes that are to be prepared are written with that.
func (f *facts) updateVolumes(d *Decision) {
	if f.preparesVolumes(d) || f.in.Objects.Soon || f.in.Objects.Files == "" || f.in.Objects.Files == f.in.History.Written {
		return
	}
	if fail := f.in.History.Update; f.in.Now.Before(fail.Until) {
		d.Why, d.Problem, d.Failure = fail.Message, true, fail
		d.wakeAt(fail.Until)
		return
	}
	d.do(UpdateVolumes{UID: f.in.Desired.UID, Files: f.in.Objects.Files})
}
