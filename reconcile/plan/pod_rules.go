package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

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

func (f *facts) hold(d *Decision) { f.keepHooks(d) }

// keepHooks goes on with what cannot be made half: whoever gives a hook up has it
// made again.
func (f *facts) keepHooks(d *Decision) {
	for _, subject := range slices.Sorted(maps.Keys(f.in.InFlight)) {
		if a, ok := f.in.InFlight[subject].(PreStop); ok {
			d.do(a)
		}
	}
}

// waitRuntime begins nothing, and gives nothing up that may yet come right: a
// list that took too long is no reason to pull an image anew.
func (f *facts) waitRuntime(d *Decision) {
	d.Why = f.in.Node.Message
	if f.in.Desired == nil {
		f.keepHooks(d)
		return
	}
	for _, subject := range slices.Sorted(maps.Keys(f.in.InFlight)) {
		d.do(f.in.InFlight[subject])
	}
}

func (f *facts) liveForeign() *runtime.Incarnation {
	for i := range f.foreign {
		if Live(&f.foreign[i]) {
			return &f.foreign[i]
		}
	}
	return nil
}

func (f *facts) adopts() bool {
	inc := f.liveForeign()
	// What another podd made is that podd's, adopt or not.
	return f.in.Desired != nil && f.in.Node.Adopt && inc != nil && inc.Labels[runtime.LabelInstance] == ""
}

func (f *facts) endForeign(d *Decision) {
	d.Why = "adopted"
	f.clean(d, EndForeign{ID: f.liveForeign().ID})
}

func (f *facts) foreignHolds() bool {
	return f.in.Desired != nil && f.liveForeign() != nil && (f.cur == nil || !Live(f.cur))
}

func (f *facts) waitForeign(d *Decision) {
	d.Why = "a pod of this name that podd did not make runs on this runtime; remove it, or start podd with --adopt"
	d.Problem = true
	d.Reason = "NameInUse"
}

// liveStale is the incarnation to stop next: the one already being stopped,
// else the newest. One that died by itself counts until its network is freed:
// a successor may want its ports and addresses.
func (f *facts) liveStale() *runtime.Incarnation {
	var found *runtime.Incarnation
	for i := range f.stale {
		inc := &f.stale[i]
		if !Live(inc) && (inc.ID == "" || f.in.History.Released[inc.ID]) {
			continue
		}
		if f.in.ending(inc.ID) {
			return inc
		}
		if found == nil {
			found = inc
		}
	}
	return found
}

// keepsEarlier: a version that podd has no manifest for any more ran, and the
// wanted one cannot start yet.
func (f *facts) keepsEarlier() bool {
	inc := f.liveStale()
	if f.in.Desired == nil || ofCluster(f.in.Desired) || inc == nil || !Live(inc) || f.in.ending(inc.ID) || Runs(f.in.Desired, inc) || !slices.ContainsFunc(inc.Containers, ran) {
		return false
	}
	if f.in.Verdict.Answer == Reject || f.nodeWaits(f.in.Desired) != "" || f.in.Objects.Missing != "" {
		return true
	}
	for i := range f.members {
		if !f.members[i].imagePresent() {
			return true
		}
	}
	why, _ := f.volumesWait(&Decision{}, f.in.Desired)
	return why != ""
}

func (f *facts) keepEarlier(d *Decision) {
	why := ""
	for i := range f.members {
		m := &f.members[i]
		step := Step{Container: m.spec.Name, Rule: "wait"}
		if !m.imagePresent() {
			step.Rule = "wait for its image"
			why = cmp.Or(why, "getting its images")
			getImage(f, m, d, &step)
			if step.Problem {
				why, d.Problem = step.Why, true
			}
		}
		d.Steps = append(d.Steps, step)
	}
	if f.in.Objects.Missing != "" {
		why, d.Problem = f.in.Objects.Missing, true
	} else if vol, bad := f.volumesWait(d, f.in.Desired); vol != "" {
		why, d.Problem = cmp.Or(why, vol), d.Problem || bad
	}
	if node := f.nodeWaits(f.in.Desired); node != "" {
		why, d.Problem = node, true
	}
	why, d.Problem = f.letGo(d, why, d.Problem)
	d.editWaits(why)
}

func (f *facts) mustStop() bool { return f.liveStale() != nil }

func (f *facts) stopStale(d *Decision) {
	inc, why := f.liveStale(), "changed"
	switch {
	case f.in.Desired == nil && ofCluster(f.in.Leaving):
		why = "deleted from the cluster"
	case f.in.Desired == nil:
		why = "manifest removed"
	case f.in.ending(inc.ID):
		why = f.in.History.Stopping.Why
	case Runs(f.in.Desired, inc):
		why = "made twice"
	default:
		if was := VersionOf(inc, f.in.Leaving); was != nil && ClassChange(was.Spec, f.in.Desired.Spec) != "" {
			why += ": " + ClassChange(was.Spec, f.in.Desired.Spec)
		}
	}
	f.stop(d, inc, why)
}

// ClassChange tells of two versions of a pod why more cpu or memory cannot be given
// to the first as it runs, though nothing else may differ; "" when it can.
func ClassChange(was, is *v1.Pod) string {
	before, after := manifest.QoS(was), manifest.QoS(is)
	if before == after {
		return ""
	}
	return fmt.Sprintf("QoS class %s becomes %s, and a pod keeps its class as long as it runs", before, after)
}

// gone says done when nothing of this name is left; tidy removes what is.
func (f *facts) gone(d *Decision) {
	d.Done = len(f.stale)+len(f.mine)+len(f.in.Dirs) == 0 && !f.in.Unseen && !f.busy()
}

// busy: something is under way whose outcome counts. What a probe or a hook says
// of a pod that is gone does not.
func (f *facts) busy() bool {
	for _, a := range f.in.InFlight {
		if _, ok := a.(Probe); !ok && !IsHook(a) {
			return true
		}
	}
	return false
}

func (f *facts) sameUIDLeft() bool {
	remove := RemoveDir{UID: f.in.Desired.UID}
	if f.in.InFlight[remove.Subject()] == Action(remove) {
		return true // it takes logs and cgroups with it
	}
	for _, dir := range f.in.Dirs {
		if dir.UID == f.in.Desired.UID && !dir.of(f.in.Desired) {
			return true
		}
	}
	return false
}

// notAdmitted: the verdict is on the newest version; an earlier one in force was
// admitted before.
func (f *facts) notAdmitted() bool {
	return f.in.Successor == nil && f.in.Verdict.Answer != Admit && (f.cur == nil || !f.cur.Ready) && !f.keepsSize() &&
		!(ofCluster(f.in.Desired) && f.begun())
}

// begun: something was made for the version, so that it was admitted once. What is
// a cluster's is not asked again.
func (f *facts) begun() bool {
	return f.cur != nil || slices.ContainsFunc(f.in.Dirs, func(d Dir) bool { return d.UID == f.in.Desired.UID })
}

func (f *facts) waitAdmission(d *Decision) {
	d.Why, d.Reason = f.in.Verdict.Message, f.in.Verdict.Reason
	d.Problem = f.in.Verdict.Answer == Reject
	d.Failure = Failure{Reason: d.Reason, Message: d.Why, Final: d.Problem}
}

func (f *facts) runtimeNotReady() bool {
	return !f.in.Node.Ready && (f.cur == nil || !f.cur.Ready)
}

func (f *facts) waitReady(d *Decision) {
	d.Why, d.Problem = f.in.Node.Message, true
	f.prefetch(d)
}

func (f *facts) networkNotReady() bool {
	return !f.in.Node.NetworkReady && !f.in.Desired.Spec.Spec.HostNetwork && (f.cur == nil || !f.cur.Ready)
}

func (f *facts) waitNetwork(d *Decision) {
	d.Why, d.Problem, d.Reason = f.in.Node.NetworkMessage, true, "NetworkNotReady"
	f.prefetch(d)
}

func (f *facts) endLost(d *Decision) {
	d.Why = "the sandbox is not ready"
	if len(f.cur.ID) > 0 {
		f.clean(d, StopSandbox{ID: f.cur.ID, Why: SandboxLost})
	} else {
		f.removeRecords(d, f.cur)
	}
}

func (f *facts) prepare(d *Decision) {
	f.prepareVolumes(d)
	fail := f.in.History.Sandbox
	switch {
	case f.in.Now.Before(fail.Until):
		d.Why, d.Problem, d.Reason, d.Failure = fail.Message, true, fail.Reason, fail
		d.wakeAt(fail.Until)
	case f.in.Unseen: // what the runtime has of this name is being looked at
	default:
		d.do(RunSandbox{Attempt: f.nextAttempt()})
	}
	f.prefetch(d)
}

func (f *facts) prepareVolumes(d *Decision) {
	if f.in.History.VolumesReady {
		return
	}
	fail := f.in.History.Volumes
	if f.in.Now.Before(fail.Until) {
		d.Why, d.Problem, d.Failure = fail.Message, true, fail
		d.wakeAt(fail.Until)
		return
	}
	d.do(PrepareVolumes{UID: f.in.Desired.UID})
	if fail.Message != "" { // a server may take its time to fail again
		d.Why, d.Problem = fail.Message, true
	}
}

// nextAttempt is above that of every sandbox seen with the UID.
func (f *facts) nextAttempt() uint32 {
	var n uint32
	for _, inc := range f.in.Observed {
		if inc.UID == f.in.Desired.UID && inc.ID != "" {
			n = max(n, inc.Attempt+1)
		}
	}
	return n
}

func (f *facts) initPending() bool {
	for i := range f.members {
		if m := &f.members[i]; m.kind != Regular && !f.initSatisfied(m) {
			return true
		}
	}
	return false
}

func (f *facts) finished() bool {
	if f.in.History.Finished.Of(f.wanted) {
		return true
	}
	return f.outcome() != nil
}

// outcome is how the pod ended, nil while it has not.
func (f *facts) outcome() *Finished {
	if f.in.Desired.Over() {
		return f.recorded()
	}
	e := f.in.Evict
	evicted := e != nil && e.UID == f.in.Desired.UID
	if evicted && e.Reason != Terminated {
		return f.failed(cmp.Or(e.Reason, Evicted), e.Message)
	}
	if f.rejected() {
		return f.failed(f.in.Verdict.Reason, Rejected+f.in.Verdict.Message)
	}
	if fin := f.ended(); fin != nil {
		return fin
	}
	if evicted {
		return f.terminated(e)
	}
	if at := f.deadline(); !at.IsZero() && !f.in.Now.Before(at) {
		return f.failed(DeadlineExceeded, "Pod was active on the node longer than the specified deadline")
	}
	return nil
}

// Rejected is before the message of a pod that its node did not admit for good.
const Rejected = "Pod was rejected: "

// rejected: a pod of a cluster is to run elsewhere then, and waits for nothing.
func (f *facts) rejected() bool {
	return ofCluster(f.in.Desired) && f.in.Successor == nil && f.in.Verdict.Answer == Reject && !f.begun() && f.in.Node.Reachable
}

// recorded is the end that the cluster has of the pod.
func (f *facts) recorded() *Finished {
	s := &f.in.Desired.Spec.Status
	fin := f.failed(s.Reason, s.Message)
	fin.Failed = s.Phase == v1.PodFailed
	return fin
}

// failed is an end that no container is to blame for.
func (f *facts) failed(reason, message string) *Finished {
	return &Finished{
		UID: f.in.Desired.UID, Hash: f.in.Desired.Hash, Size: f.wanted.PodSize(), At: f.in.Now,
		Failed: true, Reason: reason, Message: message,
	}
}

// ended is how the pod ended by itself, nil while it has not.
func (f *facts) ended() *Finished {
	fin := &Finished{UID: f.in.Desired.UID, Hash: f.in.Desired.Hash, Size: f.wanted.PodSize(), At: f.in.Now}
	if m := f.failedInit(); m != nil {
		fin.Failed = true
		fin.Message = fmt.Sprintf("init container %s exited with %d", m.spec.Name, m.last.ExitCode)
		return fin
	}
	lost := f.lostForGood()
	for i := range f.members {
		m := &f.members[i]
		if m.kind != Regular {
			continue
		}
		if !f.completed(m) {
			if !lost {
				return nil
			}
			fin.Failed = true
			fin.Message = "the sandbox was lost before " + m.spec.Name + " ended"
			continue
		}
		fin.Failed = fin.Failed || m.exit().Code != 0
	}
	return fin
}

// failedInit is the init container that failed for good, which ends the pod.
func (f *facts) failedInit() *member {
	if f.regularMade() {
		return nil
	}
	for i := range f.members {
		m := &f.members[i]
		if m.kind == Init && m.is(runtime.Exited) && m.last.ExitCode != 0 && !f.restartsAfter(m, m.last.ExitCode) && !m.restartAsked() {
			return m
		}
	}
	return nil
}

// lostForGood: a pod whose containers ran once is not run again in a new sandbox
// when none of them may be started again.
func (f *facts) lostForGood() bool {
	if f.cur == nil || f.cur.Ready || !f.in.History.Released[f.cur.ID] {
		return false
	}
	ran := false
	for i := range f.members {
		m := &f.members[i]
		if m.kind != Regular {
			continue
		}
		if f.mayRunAgain(m) {
			return false
		}
		ran = ran || m.started
	}
	return ran
}

// mayRunAgain: by how it ended, else by its policy alone: without an exit code
// there is nothing to hold rules against.
func (f *facts) mayRunAgain(m *member) bool {
	if e := m.exit(); e != nil && !m.restartAsked() {
		return f.restartsAfter(m, e.Code)
	}
	return f.policy(m) != v1.RestartPolicyNever
}

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
