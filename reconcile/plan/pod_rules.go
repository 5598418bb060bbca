package plan

type podRule struct {
	name  string
	phase Phase
	when  func(*facts) bool
	then  func(*facts, *Decision)
}

// SandboxLost is the rule by which a sandbox that died is replaced.
const SandboxLost = "sandbox lost"

// NotAdmitted is the rule by which a pod waits for the node to take it.
const NotAdmitted = "not admitted"

// podRules choose the phase; the first match wins, so the order is the policy.
var podRules []podRule

func init() {
	podRules = []podRule{
		// Absence means nothing until every source of the pod's kind was seen
		// whole: a slow directory must not cost a running pod.
		{"sources not seen yet", PhaseHold, func(f *facts) bool { return f.in.Desired == nil && !f.in.Certain }, (*facts).hold},
		// Nothing is known and nothing can be done; containers run on.
		{"runtime does not answer", PhaseWait, func(f *facts) bool { return !f.in.Node.Reachable }, (*facts).waitRuntime},
		// Foreign pods are looked at and never touched, unless asked to adopt.
		{"end a foreign pod", PhaseStop, (*facts).adopts, (*facts).endForeign},
		{"a foreign pod has the name", PhaseWait, (*facts).foreignHolds, (*facts).waitForeign},
		// An edit that cannot start must not stop what runs.
		{"keep the earlier version", PhaseWait, (*facts).keepsEarlier, (*facts).keepEarlier},
		// Old and new version never run side by side: ports and host paths.
		{"stop", PhaseStop, (*facts).mustStop, (*facts).stopStale},
		{"gone", PhaseRest, func(f *facts) bool { return f.in.Desired == nil }, (*facts).gone},
		// The directory of an earlier version with the same UID goes first.
		{"clear the earlier version", PhaseWait, (*facts).sameUIDLeft, func(*facts, *Decision) {}},
		{"finished", PhaseWindDown, (*facts).finished, (*facts).windDown},
		// A dead sandbox still holds its addresses and maybe processes.
		{SandboxLost, PhasePrepare, func(f *facts) bool { return f.cur != nil && !f.cur.Ready && !f.in.History.Released[f.cur.ID] }, (*facts).endLost},
		{NotAdmitted, PhaseWait, (*facts).notAdmitted, (*facts).waitAdmission},
		{"runtime not ready", PhaseWait, (*facts).runtimeNotReady, (*facts).waitReady},
		{"network not ready", PhaseWait, (*facts).networkNotReady, (*facts).waitNetwork},
		// What it is to read may come later; half a pod helps nobody.
		{"objects missing", PhaseWait, (*facts).objectsMissing, (*facts).waitObjects},
		{"no sandbox", PhasePrepare, func(f *facts) bool { return f.cur == nil || !f.cur.Ready }, (*facts).prepare},
		{"init", PhaseInit, (*facts).initPending, (*facts).steps},
		{"run", PhaseRun, func(*facts) bool { return true }, (*facts).steps},
	}
}
