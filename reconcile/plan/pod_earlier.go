package plan

import (
	"cmp"
	"slices"

	"podd/runtime"
)

// nextToStop returns the incarnation to stop next; nil if there is none. It prefers an incarnation
// that is already being stopped, and otherwise returns the newest incarnation. An incarnation whose
// containers have exited must also be stopped, so that its ports and addresses are released.
func (f *facts) nextToStop() *runtime.Incarnation {
	var newest *runtime.Incarnation
	for i := range f.incarnationsToStop {
		inc := &f.incarnationsToStop[i]
		if !IsLive(inc) && (inc.ID == "" || f.in.History.ReleasedSandboxes[inc.ID]) {
			continue
		}
		if f.in.isSandboxStopping(inc.ID) {
			return inc
		}
		if newest == nil {
			newest = inc
		}
	}
	return newest
}

// shouldKeepEarlier reports whether a running earlier version keeps running until the desired
// version can start. podd does not have the manifest of the earlier version, because otherwise the
// earlier version would still be in force.
func (f *facts) shouldKeepEarlier() bool {
	inc := f.nextToStop()
	if f.in.Desired == nil || f.in.Desired.Traits.DeletedOnlyBySource || inc == nil || !IsLive(inc) || f.in.isSandboxStopping(inc.ID) || IsCreatedFrom(inc, f.in.Desired) || !slices.ContainsFunc(inc.Containers, wasStarted) {
		return false
	}
	if f.in.Verdict.Answer == Reject || f.whyNodeWaits(f.in.Desired) != "" || f.in.Objects.MissingMessage != "" {
		return true
	}
	for i := range f.containers {
		if !f.containers[i].hasImage() {
			return true
		}
	}
	volumeReason, _ := f.whyVolumesWait(&Decision{}, f.in.Desired)
	return volumeReason != ""
}

// keepEarlier prepares the start of the desired version while the earlier version runs.
func (f *facts) keepEarlier(d *Decision) {
	f.applyContainerRules(keepEarlierRules, f.containers, d)
	reason := ""
	for _, step := range d.Steps {
		if step.Rule == RuleImageMissing {
			reason = cmp.Or(reason, "pulling its images")
		}
		if step.NeedsUser {
			reason, d.NeedsUser = step.Why, true
		}
	}
	if f.in.Objects.MissingMessage != "" {
		reason, d.NeedsUser = f.in.Objects.MissingMessage, true
	} else if volumeReason, volumeProblem := f.whyVolumesWait(d, f.in.Desired); volumeReason != "" {
		reason, d.NeedsUser = cmp.Or(reason, volumeReason), d.NeedsUser || volumeProblem
	}
	if nodeReason := f.whyNodeWaits(f.in.Desired); nodeReason != "" {
		reason, d.NeedsUser = nodeReason, true
	}
	reason, d.NeedsUser = f.whyNotReplaced(d, reason, d.NeedsUser)
	d.explainEdit(reason)
}
