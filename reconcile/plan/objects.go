package plan

// objectsMissing reports whether the pod cannot start because an object that it refers to is
// missing. A pod that already runs keeps running.
func (f *facts) objectsMissing() bool {
	return f.in.Objects.Missing != "" && (f.cur == nil || !f.cur.Ready)
}

func (f *facts) waitObjects(d *Decision) {
	if f.in.Objects.Soon { // images are not pulled, because their names may depend on the objects
		d.Why = f.in.Objects.Missing
		return
	}
	d.Why = f.in.Objects.Missing + "; the pod starts when the object exists"
	d.Problem, d.Reason = true, f.in.Objects.Reason
	f.prefetch(d)
}

// runsWithoutObjects reports whether the pod runs although an object that it refers to is missing.
func (f *facts) runsWithoutObjects(d *Decision) bool {
	return f.containerRulesApply(d) && f.in.Objects.Missing != "" && !f.in.Objects.Soon
}

func (f *facts) showMissing(d *Decision) {
	d.Why, d.Problem = f.in.Objects.Missing+"; the pod keeps running with the current content of the object", true
}

// volumesOutdated reports whether the files in the volumes of a running pod must be updated,
// because an object has changed. After a restart of podd, the content of the files is unknown. So
// the files are updated once, as soon as all objects are known. Volumes that are being prepared are
// not updated, because they get the present content.
func (f *facts) volumesOutdated(d *Decision) bool {
	o := &f.in.Objects
	return f.containerRulesApply(d) && !f.preparesVolumes(d) && !o.Soon && o.Files != "" && o.Files != f.in.History.Written
}

func (f *facts) updateVolumes(d *Decision) {
	if fail := f.in.History.Update; f.in.Now.Before(fail.Until) {
		d.Why, d.Problem, d.Failure = fail.Message, true, fail
		d.wakeAt(fail.Until)
		return
	}
	d.do(UpdateVolumes{UID: f.in.Desired.UID, Files: f.in.Objects.Files})
}
