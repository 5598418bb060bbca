package plan

type podRule struct {
	name  string
	phase Phase
	when  func(*facts) bool
	then  func(*facts, *Decision)
}

// SandboxLost is the rule that replaces a sandbox that has exited.
const SandboxLost = "sandbox lost"

// NotAdmitted is the rule for a pod that waits for admission.
const NotAdmitted = "not admitted"

// podRules choose the phase; the first match wins, so the order is the policy.
var podRules []podRule

func init() {
	podRules = []podRule{
		// The absence of a pod means nothing until every source of its kind was read
		// completely: a slow directory must not stop a running pod.
		{"sources not seen yet", PhaseHold, func(f *facts) bool { return f.in.Desired == nil && !f.in.Certain }, (*facts).hold},
		// Nothing can be observed or done; containers keep running.
		{"runtime does not answer", PhaseWait, func(f *facts) bool { return !f.in.Node.Reachable }, (*facts).waitRuntime},
		// podd never changes foreign pods, unless it adopts.
		{"end a foreign pod", PhaseStop, (*facts).adopts, (*facts).endForeign},
		{"a foreign pod has the name", PhaseWait, (*facts).foreignHolds, (*facts).waitForeign},
		// An edit that cannot start must not stop a running version.
		{"keep the earlier version", PhaseWait, (*facts).keepsEarlier, (*facts).keepEarlier},
		// Two versions never run at the same time, because of ports and host paths.
		{"stop", PhaseStop, (*facts).mustStop, (*facts).stopStale},
		{"gone", PhaseRest, func(f *facts) bool { return f.in.Desired == nil }, (*facts).gone},
		// The directory of an earlier version with the same UID is removed first.
		{"clear the earlier version", PhaseWait, (*facts).sameUIDLeft, func(*facts, *Decision) {}},
		{"finished", PhaseWindDown, (*facts).finished, (*facts).windDown},
		// A stopped sandbox still has its addresses and perhaps processes.
		{SandboxLost, PhasePrepare, func(f *facts) bool { return f.cur != nil && !f.cur.Ready && !f.in.History.Released[f.cur.ID] }, (*facts).endLost},
		// Whether its containers are restarted in a new one is unknown yet.
		{"exit code unknown", PhaseWait, (*facts).lacksExit, (*facts).waitExits},
		// The pod may have finished, and only its journal would show that.
		{"journal unreadable", PhaseWait, (*facts).mayHaveFinished, (*facts).waitJournal},
		{NotAdmitted, PhaseWait, (*facts).notAdmitted, (*facts).waitAdmission},
		{"runtime not ready", PhaseWait, (*facts).runtimeNotReady, (*facts).waitReady},
		{"network not ready", PhaseWait, (*facts).networkNotReady, (*facts).waitNetwork},
		// A missing object may be created later.
		{"objects missing", PhaseWait, (*facts).objectsMissing, (*facts).waitObjects},
		{"no sandbox", PhasePrepare, func(f *facts) bool { return f.cur == nil || !f.cur.Ready }, (*facts).prepare},
		{"init", PhaseInit, (*facts).initPending, (*facts).steps},
		{"run", PhaseRun, func(*facts) bool { return true }, (*facts).steps},
	}
}
