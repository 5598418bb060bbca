package plan

// objectsMissing reports whether objects are missing for the start. A pod that already runs
// keeps running without them.
func (f *facts) objectsMissing() bool {
	return f.in.Objects.Missing != "" && (f.cur == nil || !f.cur.Ready)
}

func (f *facts) waitObjects(d *Decision) {
	if f.in.Objects.Soon { // the names of images may not be known yet either
		d.Why = f.in.Objects.Missing
		return
	}
	d.Why = f.in.Objects.Missing + "; the pod starts when it is there"
	d.Problem, d.Reason = true, f.in.Objects.Reason
	f.prefetch(d)
}

func (f *facts) runsWithoutObjects(d *Decision) bool {
	return f.inSandbox(d) && f.in.Objects.Missing != "" && !f.in.Objects.Soon
}

func (f *facts) showMissing(d *Decision) {
	d.Why, d.Problem = f.in.Objects.Missing+"; the pod keeps running with its current content", true
}

// volumesOutdated reports whether the files of a running pod differ from the content of its
// objects. The content of the files is only on disk, so podd checks them once after a
// restart, when all objects have been looked up. Volumes that will be prepared are written
// then.
func (f *facts) volumesOutdated(d *Decision) bool {
	o := &f.in.Objects
	return f.inSandbox(d) && !f.preparesVolumes(d) && !o.Soon && o.Files != "" && o.Files != f.in.History.Written
}

func (f *facts) updateVolumes(d *Decision) {
	if fail := f.in.History.Update; f.in.Now.Before(fail.Until) {
		d.Why, d.Problem, d.Failure = fail.Message, true, fail
		d.wakeAt(fail.Until)
		return
	}
	d.do(UpdateVolumes{UID: f.in.Desired.UID, Files: f.in.Objects.Files})
}
