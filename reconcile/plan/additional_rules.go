package plan

// An additionalRule is a row of the table of additional rules.
type additionalRule struct {
	id       RuleID
	verb     string
	sentence string
	// beforePodRule reports whether the rule applies before the action of the pod rule. It is true
	// if container rules depend on the actions that the additional rule adds.
	beforePodRule bool
	when          func(*facts, *Decision) bool
	then          func(*facts, *Decision)
}

// additionalRules apply in addition to the pod rule. All rows with a true condition apply, in this
// order. If several rows set Decision.Why, the value of the last row applies.
var additionalRules = []additionalRule{
	{RulePreparing, "prepare", "the preparation of the sandbox and the volumes is in progress and continues", true,
		(*facts).containerRulesApply, (*facts).keepPreparing},
	// While containers are resized, the cgroup must allow both their old and their new sizes.
	// Therefore it is resized after the containers.
	{RulePodResized, "resize", "the containers have been resized, so the cgroup of the pod is resized", false,
		(*facts).needsPodResize, (*facts).resizePod},
	{RuleRunsWithoutObjects, "keep", "the pod keeps running although an object that it refers to is missing", false,
		(*facts).runsWithoutObjects, (*facts).showMissing},
	{RuleResizeNotAdmitted, "keep", "the pod keeps its size, because the node does not admit the new size", false,
		(*facts).isResizeNotAdmitted, (*facts).showUnadmitted},
	{RuleVolumesOutdated, "update", "an object that the pod mounts has changed, so the volumes of the pod are updated", false,
		(*facts).hasOutdatedVolumes, (*facts).updateVolumes},
	{RuleEditDuringShutdown, "wait", "the node is shutting down, so the new version of the pod does not replace the running version", false,
		(*facts).hasEditDuringShutdown, (*facts).waitShutdown},
	{RuleEditWaits, "wait", "the new version of the pod replaces the running one as soon as it can start", false,
		(*facts).hasSuccessor, (*facts).replaceOrPrepare},
	{RuleTerminationMessages, "read", "the termination messages of exited containers are read", false,
		isNotReplaced, func(f *facts, d *Decision) { f.readMessages(d) }},
	{RuleActiveDeadline, "wait", "the pod fails when activeDeadlineSeconds has passed", false,
		(*facts).hasDeadlineAhead, func(f *facts, d *Decision) { d.wakeAt(f.deadline()) }},
	{RuleKillEvicted, "kill", "the runtime did not stop the evicted pod in time, so podd kills its processes itself", false,
		(*facts).mayKill, (*facts).killEvicted},
	{RuleCleanup, "remove", "old sandboxes, containers and directories of the pod are removed", false,
		(*facts).mayCleanUp, (*facts).cleanUp},
}

// applyAdditionalRules applies the additional rules whose field beforePodRule equals the argument.
func (f *facts) applyAdditionalRules(d *Decision, beforePodRule bool) {
	for _, r := range additionalRules {
		if r.beforePodRule != beforePodRule || !r.when(f, d) {
			continue
		}
		oldWhy := d.Why
		r.then(f, d)
		if d.Why != oldWhy {
			d.WhyRule = r.id
		}
	}
}

// containerRulesApply reports whether d has a phase (init or run) in which the container rules
// apply.
func (f *facts) containerRulesApply(d *Decision) bool {
	return d.Phase == PhaseInit || d.Phase == PhaseRun
}

// keepPreparing adds the preparations in progress to d, so that they are not canceled, even if no
// container waits for them now.
func (f *facts) keepPreparing(d *Decision) {
	prepare := PrepareVolumes{UID: f.in.Desired.UID}
	if f.in.InFlight[prepare.Subject()] == Action(prepare) {
		d.addAction(prepare)
	}
	// Do not cancel a RunPodSandbox call if the runtime already lists the new sandbox, because
	// after a cancellation the runtime could remove the sandbox. The runtime lists the sandbox
	// shortly before the call returns.
	if run, ok := f.in.InFlight[RunSandbox{}.Subject()].(RunSandbox); ok && run.Attempt == f.current.Attempt {
		d.addAction(run)
	}
}

// isNotReplaced reports whether d does not replace the version in force.
func isNotReplaced(_ *facts, d *Decision) bool { return !d.UseSuccessor }
