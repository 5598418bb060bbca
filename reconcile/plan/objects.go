package plan

import "cmp"

// lacksObjects reports whether an object is missing that the pod needs to start. A pod that already
// runs keeps running without it.
func (f *facts) lacksObjects() bool {
	return f.in.Objects.MissingMessage != "" && (f.current == nil || !f.current.Ready)
}

func (f *facts) waitObjects(d *Decision) {
	d.wakeAt(f.attachDeadline())
	if f.in.Objects.EndsByItself { // images are not pulled yet, because the names of images may depend on the objects
		d.Why = f.in.Objects.MissingMessage
		return
	}
	d.Why = f.in.Objects.MissingMessage + "; " + cmp.Or(f.in.Objects.Remedy, "the pod starts when the object exists")
	d.NeedsUser, d.Reason = true, f.in.Objects.Reason
	f.prefetchImages(d)
}

// runsWithoutObjects reports whether the pod runs although an object that it refers to is missing.
func (f *facts) runsWithoutObjects(d *Decision) bool {
	return f.containerRulesApply(d) && f.in.Objects.MissingMessage != "" && !f.in.Objects.EndsByItself
}

func (f *facts) showMissing(d *Decision) {
	d.Why, d.NeedsUser = f.in.Objects.MissingMessage+"; the pod keeps running, and its volumes keep their current content", true
}

// hasOutdatedVolumes reports whether the files in the volumes of a running pod must be updated,
// because an object has changed. After a restart of podd, it does not know the content of the
// files. So the files are updated once, as soon as podd has looked up all objects. Volumes that are
// being prepared are not updated, because they are written from the current objects.
func (f *facts) hasOutdatedVolumes(d *Decision) bool {
	o := &f.in.Objects
	return f.containerRulesApply(d) && !f.preparesVolumes(d) && !o.EndsByItself && o.FilesDigest != "" && o.FilesDigest != f.in.History.WrittenFilesDigest
}

func (f *facts) updateVolumes(d *Decision) {
	if fail := f.in.History.UpdateFailure; f.in.Now.Before(fail.RetryAt) {
		d.Why, d.NeedsUser, d.Failure = fail.Message, true, fail
		d.wakeAt(fail.RetryAt)
		return
	}
	d.addAction(UpdateVolumes{UID: f.in.Desired.UID, FilesDigest: f.in.Objects.FilesDigest})
}
