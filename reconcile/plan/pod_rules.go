package plan

// A podRule is a row of podRules. The first row with a true condition selects the phase of the pod.
type podRule struct {
	id       RuleID
	phase    Phase
	sentence string
	when     func(*facts) bool
	then     func(*facts, *Decision)
}

// podRules choose the phase of the pod. The first row with a true condition applies, so their order
// matters.
var podRules = []podRule{
	// A running pod must not be stopped before its sources were read.
	{RuleSourcesNotRead, PhaseHold, "podd has not read all sources of this pod yet, so nothing is changed",
		func(f *facts) bool { return f.in.Desired == nil && !f.in.SourcesRead }, (*facts).keepHooks},
	// The node needs the resources of an evicted pod, even if the runtime does not respond.
	{RuleEvictedUnreachable, PhaseWindDown, "the runtime does not respond, so podd kills the processes of the evicted pod itself",
		(*facts).isEvictedUnreachable, (*facts).endUnreachable},
	{RuleRuntimeUnreachable, PhaseWait, "the runtime does not respond; containers keep running",
		func(f *facts) bool { return !f.in.Node.RuntimeReachable }, (*facts).waitRuntimeReachable},
	{RuleAdoptForeign, PhaseStop, "a pod that another agent runs under this name is stopped, because podd takes over the pods of other agents",
		(*facts).hasAdoptable, (*facts).stopForeign},
	// podd stops foreign pods only with --adopt.
	{RuleNameInUse, PhaseWait, "a pod that this podd did not create has the name of this pod",
		(*facts).isNameInUse, (*facts).waitForeign},
	// A running version must not be stopped if the new version cannot start.
	{RuleKeepEarlierVersion, PhaseWait, "the new version cannot start yet, so the earlier version keeps running",
		(*facts).shouldKeepEarlier, (*facts).keepEarlier},
	// Two versions never run at the same time, because they may use the same ports and host
	// paths.
	{RuleStop, PhaseStop, "a version that is not desired any more is stopped before anything else starts",
		(*facts).mustStop, (*facts).stopStale},
	{RuleRemoved, PhaseCleanedUp, "the pod is not desired any more; its files are removed",
		func(f *facts) bool { return f.in.Desired == nil }, (*facts).checkFullyRemoved},
	{RuleEarlierDirectoryLeft, PhaseWait, "the directory of an earlier version with the same UID is removed first",
		(*facts).hasEarlierDirectory, func(*facts, *Decision) {}},
	{RuleFinished, PhaseWindDown, "the pod has finished; its sandbox is stopped and its volumes are released",
		(*facts).isFinished, (*facts).windDown},
	// A sandbox that is not ready still has its addresses, and may have processes.
	{RuleSandboxLost, PhasePrepare, "the sandbox is not ready any more and is stopped before a new sandbox is created",
		func(f *facts) bool {
			return f.current != nil && !f.current.Ready && !f.in.History.ReleasedSandboxes[f.current.ID]
		}, (*facts).stopLostSandbox},
	{RuleRestartUndecided, PhaseWait, "the runtime has not reported an exit code that decides whether containers restart",
		(*facts).lacksExitCode, (*facts).waitExits},
	{RuleJournalUnreadable, PhaseWait, "the pod may have finished already, but its journal cannot be read",
		(*facts).mayHaveFinished, (*facts).waitJournal},
	{RuleNotAdmitted, PhaseWait, "the node does not admit the pod",
		(*facts).isNotAdmitted, (*facts).waitAdmission},
	{RuleRuntimeNotReady, PhaseWait, "the runtime is not ready",
		(*facts).isRuntimeNotReady, (*facts).waitRuntimeReady},
	{RuleNetworkNotReady, PhaseWait, "the pod network is not ready",
		(*facts).isNetworkNotReady, (*facts).waitNetwork},
	// The pod waits, because the object may be created later.
	{RuleObjectsMissing, PhaseWait, "an object that the pod refers to is missing",
		(*facts).lacksObjects, (*facts).waitObjects},
	{RuleNoSandbox, PhasePrepare, "the sandbox, the volumes and the images are prepared",
		func(f *facts) bool { return f.current == nil || !f.current.Ready }, (*facts).prepare},
	// Init containers must not run while other containers of the pod are being stopped.
	{RuleRestartAllContainers, PhaseInit, "a container exited with an exit code that restarts all containers of the pod",
		(*facts).isRestartingAll, (*facts).restartAll},
	{RuleInit, PhaseInit, "an init container has not completed, or a sidecar has not started",
		(*facts).isInitPending, (*facts).decideContainers},
	{RuleRun, PhaseRun, "the containers of the pod are started and kept running",
		func(*facts) bool { return true }, (*facts).decideContainers},
}
