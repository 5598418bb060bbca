package plan

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// versioned returns a pod with one container, app, and an image that is on the node.
func versioned(uid types.UID) *manifest.Pod {
	return &manifest.Pod{UID: uid, Hash: "v1:" + string(uid), Object: &v1.Pod{Spec: v1.PodSpec{
		RestartPolicy: v1.RestartPolicyAlways,
		Containers:    []v1.Container{{Name: "app", Image: "a:1", ImagePullPolicy: v1.PullIfNotPresent}},
	}}}
}

// sandboxOf returns a sandbox of a version with a container app for each state.
func sandboxOf(p *manifest.Pod, ready bool, states ...runtime.ContainerState) runtime.Incarnation {
	inc := runtime.Incarnation{Sandbox: runtime.Sandbox{
		ID: "s-" + string(p.UID), UID: p.UID, Ready: ready, Annotations: map[string]string{runtime.AnnotationPodHash: p.Hash},
	}}
	for i, state := range states {
		inc.Containers = append(inc.Containers, runtime.Container{ID: "c", SandboxID: inc.ID, Name: "app", Attempt: uint32(i), State: state, Annotations: map[string]string{}})
	}
	return inc
}

// fresh returns an input with a desired pod that can start and that has no sandbox.
func fresh() Input {
	return Input{
		Desired: versioned("u"), SourcesRead: true, Now: time.Now(), Node: Node{RuntimeReachable: true, RuntimeReady: true, NetworkReady: true},
		InFlight: map[string]Action{},
		History: History{VolumesReady: true, ReleasedSandboxes: map[string]bool{}, ExitSeenAt: map[string]time.Time{},
			Containers: map[string]ContainerHistory{"app": {Image: Image{Name: "a:1", Ref: "sha256:a"}}}},
	}
}

// runs returns an Input like that of fresh, but the pod runs.
func runs() Input {
	in := fresh()
	in.Observed = []runtime.Incarnation{sandboxOf(in.Desired, true, runtime.Running)}
	return in
}

// TestPodRules checks which rule matches after a change of an input in which the pod runs.
func TestPodRules(t *testing.T) {
	tests := map[string]struct {
		change func(*Input)
		rule   RuleID
		phase  Phase
	}{
		"unchanged":                     {func(*Input) {}, RuleRun, PhaseRun},
		"not desired, sources not read": {func(in *Input) { in.Desired, in.SourcesRead = nil, false }, RuleSourcesNotRead, PhaseHold},
		"not desired, sources not read, runtime unreachable": {func(in *Input) { in.Desired, in.SourcesRead, in.Node.RuntimeReachable = nil, false, false }, RuleSourcesNotRead, PhaseHold},
		"runtime unreachable":                                {func(in *Input) { in.Node.RuntimeReachable = false }, RuleRuntimeUnreachable, PhaseWait},
		"evicted, runtime unreachable": {func(in *Input) {
			in.Node.RuntimeReachable, in.Eviction = false, &Eviction{UID: in.Desired.UID, Hash: in.Desired.Hash}
		}, RuleEvictedUnreachable, PhaseWindDown},
		"preempted, runtime unreachable": {func(in *Input) {
			in.Node.RuntimeReachable, in.Eviction = false, &Eviction{UID: in.Desired.UID, Hash: in.Desired.Hash, Reason: ReasonPreempted}
		}, RuleRuntimeUnreachable, PhaseWait},
		"not desired, running":                 {func(in *Input) { in.Desired = nil }, RuleStop, PhaseStop},
		"not desired, nothing observed":        {func(in *Input) { in.Desired, in.Observed = nil, nil }, RuleRemoved, PhaseCleanedUp},
		"not desired, foreign pod observed":    {func(in *Input) { in.Desired = nil; in.Observed = []runtime.Incarnation{theirs()} }, RuleRemoved, PhaseCleanedUp},
		"running in addition to a foreign pod": {func(in *Input) { in.Observed = append(in.Observed, theirs()) }, RuleRun, PhaseRun},
		"foreign pod runs instead":             {func(in *Input) { in.Observed = []runtime.Incarnation{theirs()} }, RuleNameInUse, PhaseWait},
		"foreign pod stopped":                  {func(in *Input) { dead := theirs(); dead.Ready = false; in.Observed = []runtime.Incarnation{dead} }, RuleNoSandbox, PhasePrepare},
		"foreign pod to adopt":                 {func(in *Input) { in.Observed, in.Node.AdoptKubeletPods = []runtime.Incarnation{theirs()}, true }, RuleAdoptForeign, PhaseStop},
		"stopped foreign pod with the same UID to adopt": {func(in *Input) {
			dead := theirs()
			dead.Ready, dead.UID = false, "u"
			in.Observed, in.Node.AdoptKubeletPods = []runtime.Incarnation{dead}, true
		}, RuleAdoptForeign, PhaseStop},
		"another version runs":                                   {func(in *Input) { in.Desired = versioned("next") }, RuleStop, PhaseStop},
		"another version runs, desired one rejected":             {func(in *Input) { in.Desired = versioned("next"); in.Verdict.Answer = Reject }, RuleKeepEarlierVersion, PhaseWait},
		"another version runs, desired one waits for admission":  {func(in *Input) { in.Desired = versioned("next"); in.Verdict.Answer = Wait }, RuleStop, PhaseStop},
		"another version runs, image of the desired one missing": {func(in *Input) { in.Desired, in.History.Containers = versioned("next"), nil }, RuleKeepEarlierVersion, PhaseWait},
		"another version exited, network not released":           {func(in *Input) { in.Desired = versioned("next"); in.Observed[0] = sandboxOf(versioned("u"), false) }, RuleStop, PhaseStop},
		"another version exited, network released": {func(in *Input) {
			in.Desired = versioned("next")
			in.Observed[0] = sandboxOf(versioned("u"), false)
			in.History.ReleasedSandboxes["s-u"] = true
		}, RuleNoSandbox, PhasePrepare},
		"stop in progress": {func(in *Input) { in.History.Stopping = &SandboxTermination{SandboxID: "s-u"} }, RuleStop, PhaseStop},
		"directory of an earlier version with the same UID": {func(in *Input) { in.Observed, in.PodDirs = nil, []PodDir{{UID: "u", Hash: "v1:other"}} }, RuleEarlierDirectoryLeft, PhaseWait},
		"directory of an unknown version with the same UID": {func(in *Input) { in.Observed, in.PodDirs = nil, []PodDir{{UID: "u"}} }, RuleNoSandbox, PhasePrepare},
		"removal of its directory in progress":              {func(in *Input) { in.Observed, in.InFlight["dir/u"] = nil, RemoveDir{UID: "u"} }, RuleEarlierDirectoryLeft, PhaseWait},
		"finished":                                          {func(in *Input) { in.History.Finished = &PodEnd{UID: "u", Hash: "v1:u", Size: in.Desired.PodSize()} }, RuleFinished, PhaseWindDown},
		"finished in another size":                          {func(in *Input) { in.History.Finished = &PodEnd{UID: "u", Hash: "v1:u", Size: "cpu=1/ memory=/"} }, RuleRun, PhaseRun},
		"earlier version with the same UID finished": {func(in *Input) {
			in.History.Finished = &PodEnd{UID: "u", Hash: "v1:other", Size: in.Desired.PodSize()}
		}, RuleRun, PhaseRun},
		"finished, nothing observed": {func(in *Input) {
			in.Observed, in.History.Finished = nil, &PodEnd{UID: "u", Hash: "v1:u", Size: in.Desired.PodSize()}
		}, RuleFinished, PhaseCleanedUp},
		"exited, not restarted by the policy of the pod": {func(in *Input) {
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			in.Observed[0].Containers[0].State = runtime.Exited
		}, RuleFinished, PhaseWindDown},
		"exited, not restarted by its own policy": {func(in *Input) {
			own(in, v1.ContainerRestartPolicyNever)
			in.Observed[0].Containers[0].State = runtime.Exited
		}, RuleFinished, PhaseWindDown},
		"exited, restarted by a rule": {func(in *Input) {
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			own(in, v1.ContainerRestartPolicyNever, restart(v1.ContainerRestartRuleOnExitCodesOpIn, 0))
			in.Observed[0].Containers[0].State = runtime.Exited
		}, RuleRun, PhaseRun},
		"sandbox released, never restarted": {func(in *Input) {
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			in.Observed[0] = sandboxOf(in.Desired, false, runtime.Exited)
			in.History.ReleasedSandboxes["s-u"] = true
		}, RuleFinished, PhaseCleanedUp},
		"sandbox released, restarted by a rule": {func(in *Input) {
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			own(in, v1.ContainerRestartPolicyNever, restart(v1.ContainerRestartRuleOnExitCodesOpIn, 0))
			in.Observed[0] = sandboxOf(in.Desired, false, runtime.Exited)
			in.History.ReleasedSandboxes["s-u"] = true
		}, RuleNoSandbox, PhasePrepare},
		"init container failed permanently": {func(in *Input) {
			in.Observed[0].Containers[0].Name = "i"
			failedInit(in)
		}, RuleFinished, PhaseWindDown},
		"init container failed, restarted by a rule": {func(in *Input) {
			in.Observed[0].Containers[0].Name = "i"
			failedInit(in, restart(v1.ContainerRestartRuleOnExitCodesOpIn, 3))
		}, RuleInit, PhaseInit},
		"rejected":                   {func(in *Input) { in.Observed, in.Verdict.Answer = nil, Reject }, RuleNotAdmitted, PhaseWait},
		"rejected, running":          {func(in *Input) { in.Verdict.Answer = Reject }, RuleRun, PhaseRun},
		"runtime not ready":          {func(in *Input) { in.Observed, in.Node.RuntimeReady = nil, false }, RuleRuntimeNotReady, PhaseWait},
		"runtime not ready, running": {func(in *Input) { in.Node.RuntimeReady = false }, RuleRun, PhaseRun},
		"network not ready":          {func(in *Input) { in.Observed, in.Node.NetworkReady = nil, false }, RuleNetworkNotReady, PhaseWait},
		"network not ready, host network": {func(in *Input) {
			in.Observed, in.Node.NetworkReady = nil, false
			in.Desired.Object.Spec.HostNetwork = true
		}, RuleNoSandbox, PhasePrepare},
		"network not ready, running": {func(in *Input) { in.Node.NetworkReady = false }, RuleRun, PhaseRun},
		"sandbox lost":               {func(in *Input) { in.Observed[0].Ready = false }, RuleSandboxLost, PhasePrepare},
		"sandbox lost, rejected":     {func(in *Input) { in.Observed[0].Ready = false; in.Verdict.Answer = Reject }, RuleSandboxLost, PhasePrepare},
		"sandbox released": {func(in *Input) {
			in.Observed[0] = sandboxOf(in.Desired, false, runtime.Exited)
			in.History.ReleasedSandboxes["s-u"] = true
		}, RuleNoSandbox, PhasePrepare},
		"sandbox released, exit code unknown, never restarted": {func(in *Input) {
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			in.Observed[0] = sandboxOf(in.Desired, false, runtime.ExitCodeUnknown)
			in.History.ReleasedSandboxes["s-u"] = true
		}, RuleRestartUndecided, PhaseWait},
		"sandbox released, exit code unknown, restarted on failure": {func(in *Input) {
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyOnFailure
			in.Observed[0] = sandboxOf(in.Desired, false, runtime.ExitCodeUnknown)
			in.History.ReleasedSandboxes["s-u"] = true
		}, RuleRestartUndecided, PhaseWait},
		"sandbox released, exit code unknown, always restarted": {func(in *Input) {
			in.Observed[0] = sandboxOf(in.Desired, false, runtime.ExitCodeUnknown)
			in.History.ReleasedSandboxes["s-u"] = true
		}, RuleNoSandbox, PhasePrepare},
		"exit code unknown in a ready sandbox": {func(in *Input) {
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			in.Observed[0].Containers[0].State = runtime.ExitCodeUnknown
		}, RuleRun, PhaseRun},
		"objects missing":                       {func(in *Input) { in.Observed, in.Objects.MissingMessage = nil, "a Secret" }, RuleObjectsMissing, PhaseWait},
		"objects missing, running":              {func(in *Input) { in.Objects.MissingMessage = "a Secret" }, RuleRun, PhaseRun},
		"objects missing, another version runs": {func(in *Input) { in.Desired = versioned("next"); in.Objects.MissingMessage = "a Secret" }, RuleKeepEarlierVersion, PhaseWait},
		"journal unreadable":                    {func(in *Input) { unreadable(in, v1.RestartPolicyNever); in.Observed = nil }, RuleJournalUnreadable, PhaseWait},
		"journal unreadable, released sandbox without containers": {func(in *Input) {
			unreadable(in, v1.RestartPolicyOnFailure)
			in.Observed[0] = sandboxOf(in.Desired, false)
			in.Observed[0].Containers = nil
			in.History.ReleasedSandboxes["s-u"] = true
		}, RuleJournalUnreadable, PhaseWait},
		"journal unreadable, always restarted": {func(in *Input) { unreadable(in, v1.RestartPolicyAlways); in.Observed = nil }, RuleNoSandbox, PhasePrepare},
		"journal unreadable, one container never restarted": {func(in *Input) {
			unreadable(in, v1.RestartPolicyAlways)
			own(in, v1.ContainerRestartPolicyNever)
			in.Observed = nil
		}, RuleJournalUnreadable, PhaseWait},
		"journal unreadable, running": {func(in *Input) { unreadable(in, v1.RestartPolicyNever) }, RuleRun, PhaseRun},
		"journal unreadable, exited": {func(in *Input) {
			unreadable(in, v1.RestartPolicyNever)
			in.Observed[0] = sandboxOf(in.Desired, false, runtime.Exited)
			in.History.ReleasedSandboxes["s-u"] = true
		}, RuleFinished, PhaseCleanedUp},
		"no sandbox": {func(in *Input) { in.Observed = nil }, RuleNoSandbox, PhasePrepare},
		"init container not started": {func(in *Input) {
			in.Desired.Object.Spec.InitContainers = []v1.Container{{Name: "i", Image: "a:1"}}
			in.Observed[0].Containers = nil
		}, RuleInit, PhaseInit},
		"all containers restart": {func(in *Input) { addCrashed(in, runtime.Running) }, RuleRestartAllContainers, PhaseInit},
		"all containers restart, an earlier start is in progress": {func(in *Input) {
			addCrashed(in, runtime.Exited)
			in.InFlight["container/app"] = StartContainer{Container: "app"}
		}, RuleRestartAllContainers, PhaseInit},
		"all containers restart, the other has exited": {func(in *Input) { addCrashed(in, runtime.Exited) }, RuleRun, PhaseRun},
		"all containers restarted before": {func(in *Input) {
			addCrashed(in, runtime.Running)
			in.Observed[0].Containers[0].Annotations[runtime.AnnotationPodRestarts] = "1"
		}, RuleRun, PhaseRun},
		"init completed, because a later container runs": {func(in *Input) { in.Desired.Object.Spec.InitContainers = []v1.Container{{Name: "i", Image: "a:1"}} }, RuleRun, PhaseRun},
	}
	hit := map[RuleID]bool{}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := runs()
			test.change(&in)
			d := Next(in)
			if d.Rule != test.rule || d.Phase != test.phase {
				t.Errorf("got rule %s and phase %s, want %s and %s\n%s", d.Rule, d.Phase, test.rule, test.phase, d)
			}
			hit[d.Rule] = true
		})
	}
	for _, r := range podRules {
		if !hit[r.id] {
			t.Errorf("rule %q: got no test case, want at least one", r.id)
		}
	}
}

// TestNext_NotAdmitted checks that a rejection is final unless other pods have the reservations that
// the pod needs.
func TestNext_NotAdmitted(t *testing.T) {
	for _, isBlocked := range []bool{false, true} {
		in := fresh()
		in.Observed, in.Verdict = nil, Verdict{Answer: Reject, Reason: "OutOfcpu", Message: "no cpu", BlockedByPods: isBlocked}
		d := Next(in)
		if d.Rule != RuleNotAdmitted || d.BlockedByPods != isBlocked || d.Failure.IsFinal == isBlocked {
			t.Errorf("blocked by pods %t: got rule %s, BlockedByPods %t and IsFinal %t, want %s, %t and %t", isBlocked, d.Rule, d.BlockedByPods, d.Failure.IsFinal, RuleNotAdmitted, isBlocked, !isBlocked)
		}
	}
}

// TestNext_PreliminaryVerdict checks that a rejection is reported as a problem that the user must
// solve, unless the verdict is preliminary.
func TestNext_PreliminaryVerdict(t *testing.T) {
	for name, change := range map[string]func(*Input){
		"a version that cannot replace the running one": func(in *Input) { in.Desired = versioned("next") },
		"a pod without a sandbox":                       func(in *Input) { in.Observed = nil },
		"a new size of a running pod":                   func(in *Input) { resizes(in, small, large) },
		"a new size of a container that never ran":      func(in *Input) { resizes(in, small, large); in.Observed[0].Containers = nil },
	} {
		for _, isPreliminary := range []bool{false, true} {
			in := runs()
			change(&in)
			in.Verdict = Verdict{Answer: Reject, Message: "not observed yet", IsPreliminary: isPreliminary}
			d := Next(in)
			needsUser := d.NeedsUser
			for _, s := range d.Steps {
				needsUser = needsUser || s.NeedsUser
			}
			if needsUser == isPreliminary {
				t.Errorf("%s, preliminary %t: got NeedsUser %t, want %t\n%s", name, isPreliminary, needsUser, !isPreliminary, d)
			}
		}
	}
}

// theirs returns a foreign sandbox.
func theirs() runtime.Incarnation {
	return runtime.Incarnation{Sandbox: runtime.Sandbox{ID: "f", UID: "f", Ready: true, Foreign: true}}
}

// TestContainerRules checks which rule matches for a container of a running pod after a change of
// the input.
func TestContainerRules(t *testing.T) {
	last := func(in *Input) *runtime.Container { return &in.Observed[0].Containers[0] }
	history := func(in *Input, change func(*ContainerHistory)) {
		h := in.History.Containers["app"]
		change(&h)
		in.History.Containers["app"] = h
	}
	ended := func(in *Input, step string) {
		c := last(in)
		c.State, c.ExitCode, c.Annotations[runtime.AnnotationBackoffStep] = runtime.Exited, 1, step
		c.StartedAt, c.FinishedAt = in.Now, in.Now
		in.History.ExitSeenAt["c"] = in.Now
	}
	unreported := func(in *Input) {
		ended(in, "0")
		c := last(in)
		c.State, c.ExitCode, c.FinishedAt = runtime.ExitCodeUnknown, 0, time.Time{}
	}
	tests := map[string]struct {
		change func(*Input)
		rule   RuleID
		action string // verb of the first action; "" if there is no action
	}{
		"running":           {func(*Input) {}, RuleRunning, ""},
		"restart requested": {func(in *Input) { history(in, func(h *ContainerHistory) { h.RestartRequestedID = "c" }) }, RuleRestartRequested, "stop"},
		"restart requested for an earlier container": {func(in *Input) { history(in, func(h *ContainerHistory) { h.RestartRequestedID = "b" }) }, RuleRunning, ""},
		"restart requested, exited":                  {func(in *Input) { ended(in, "5"); history(in, func(h *ContainerHistory) { h.RestartRequestedID = "c" }) }, RuleStart, "start"},
		"startup probe without a result":             {func(in *Input) { probes(in, StartupProbe, ProbeState{}) }, RuleNotStarted, "probe"},
		"startup probe failed once":                  {func(in *Input) { probes(in, StartupProbe, ProbeState{Consecutive: 2, Began: in.Now}) }, RuleNotStarted, ""},
		"startup probe failed":                       {func(in *Input) { probes(in, StartupProbe, ProbeState{Health: ProbeFailed}) }, RuleStartupProbeFailed, "stop"},
		"startup probe passed":                       {func(in *Input) { probes(in, StartupProbe, ProbeState{Health: ProbePassed}) }, RuleRunning, ""},
		"startup probe without a result, other probes wait": {func(in *Input) {
			probes(in, StartupProbe, ProbeState{Began: in.Now})
			probes(in, LivenessProbe, ProbeState{})
			probes(in, ReadinessProbe, ProbeState{})
		}, RuleNotStarted, ""},
		"liveness probe without a result":               {func(in *Input) { probes(in, LivenessProbe, ProbeState{}) }, RuleRunning, "probe"},
		"liveness probe not due":                        {func(in *Input) { probes(in, LivenessProbe, ProbeState{Began: in.Now}) }, RuleRunning, ""},
		"liveness probe failed":                         {func(in *Input) { probes(in, LivenessProbe, ProbeState{Health: ProbeFailed}) }, RuleLivenessProbeFailed, "stop"},
		"liveness probe failed, exited":                 {func(in *Input) { ended(in, "0"); probes(in, LivenessProbe, ProbeState{Health: ProbeFailed}) }, RuleStart, "start"},
		"liveness probe of an earlier container failed": {func(in *Input) { probes(in, LivenessProbe, ProbeState{Health: ProbeFailed}); last(in).ID = "b" }, RuleRunning, "probe"},
		"readiness probe without a result":              {func(in *Input) { probes(in, ReadinessProbe, ProbeState{}) }, RuleNotReady, "probe"},
		"readiness probe failed":                        {func(in *Input) { probes(in, ReadinessProbe, ProbeState{Health: ProbeFailed, Began: in.Now}) }, RuleNotReady, ""},
		"readiness probe passed":                        {func(in *Input) { probes(in, ReadinessProbe, ProbeState{Health: ProbePassed, Began: in.Now}) }, RuleRunning, ""},
		"readiness probe passed, next attempt due": {func(in *Input) {
			probes(in, ReadinessProbe, ProbeState{Health: ProbePassed, Began: in.Now.Add(-10 * time.Second)})
		}, RuleRunning, "probe"},
		"resized": {func(in *Input) { resizes(in, small, large) }, RuleResizeInPlace, "resize"},
		"resized, pod not resized yet": {func(in *Input) {
			resizes(in, small, large)
			in.History.Sizes = map[string]Size{"c": {Value: large}}
		}, RuleRunning, "resize"}, // the resize of the pod's cgroup
		"resized with a probe": {func(in *Input) {
			resizes(in, small, large)
			probes(in, LivenessProbe, ProbeState{})
		}, RuleResizeInPlace, "probe"},
		"resize failed": {func(in *Input) {
			resizes(in, small, large)
			history(in, func(h *ContainerHistory) { h.ResizeFailure.RetryAt = in.Now.Add(1) })
		}, RuleResizeInPlace, ""},
		"resized, restart required": {func(in *Input) {
			resizes(in, small, large)
			restarts(in, v1.ResourceMemory)
		}, RuleResizeByRestart, "stop"},
		"resized, restart required for another resource": {func(in *Input) {
			resizes(in, small, large)
			restarts(in, v1.ResourceCPU)
		}, RuleResizeInPlace, "resize"},
		"resized back, result of the first resize unknown": {func(in *Input) {
			resizes(in, large, large)
			in.History.Sizes = UncertainSizes(in, ResizeContainer{Container: "app", ID: "c"})
		}, RuleResizeInPlace, "resize"},
		"resized back, result for the pod unknown": {func(in *Input) {
			resizes(in, large, large)
			in.History.Sizes = UncertainSizes(in, ResizePod{SandboxID: "s-u"})
		}, RuleRunning, "resize"},
		"resized, rejected": {func(in *Input) {
			resizes(in, small, large)
			in.Verdict = Verdict{Answer: Reject}
		}, RuleRunning, ""},
		"resized, newer version waits": {func(in *Input) {
			resizes(in, small, large)
			in.Successor, in.Verdict = versioned("next"), Verdict{Answer: Reject}
		}, RuleRunning, ""},
		"resized before its creation, rejected": {func(in *Input) {
			resizes(in, small, large)
			in.Observed[0].Containers = nil
			in.Verdict = Verdict{Answer: Reject}
		}, RuleSizeNotAdmitted, ""},
		"resized after its exit, rejected": {func(in *Input) {
			resizes(in, small, large)
			ended(in, "0")
			in.Verdict = Verdict{Answer: Reject}
		}, RuleStart, "start"},
		"changed": {func(in *Input) {
			changes(in, "new")
			in.History.Containers = map[string]ContainerHistory{"app": {Image: Image{Name: in.Desired.Object.Spec.Containers[0].Image, Ref: "r"}}}
		}, RuleContainerChanged, "stop"},
		"changed, image missing": {func(in *Input) {
			changes(in, "new")
			in.History.Containers = map[string]ContainerHistory{}
		}, RuleContainerChanged, "pull"},
		"changed, UID not fixed": {func(in *Input) {
			changes(in, "new")
			in.Desired.HasFixedUID = false
		}, RuleRunning, ""},
		"unchanged": {func(in *Input) { changes(in, "old") }, RuleRunning, ""},
		"created by a kubelet": {func(in *Input) {
			changes(in, "new")
			made := in.Observed[0].Containers[0].Annotations
			delete(made, runtime.AnnotationStartHash)
			made[runtime.AnnotationContainerHash] = manifest.KubeletHash(&in.Desired.Object.Spec.Containers[0])
		}, RuleRunning, ""},
		"changed during its back-off": {func(in *Input) { changes(in, "new"); ended(in, "9") }, RuleStart, "start"},
		"state unknown":               {func(in *Input) { last(in).State = runtime.Unknown }, RuleStateUnknown, "stop"},
		"exit code unknown, never restarted": {func(in *Input) {
			unreported(in)
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
		}, RuleExitCodeUnknown, ""},
		"exit code unknown, restarted on failure": {func(in *Input) {
			unreported(in)
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyOnFailure
		}, RuleExitCodeUnknown, ""},
		"exit code unknown, always restarted": {unreported, RuleStart, "start"},
		"exit code unknown, always restarted, second exit": {func(in *Input) {
			unreported(in)
			last(in).Annotations[runtime.AnnotationBackoffStep] = "1"
		}, RuleCrashBackOff, ""},
		"exit code unknown, restart requested": {func(in *Input) {
			unreported(in)
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			history(in, func(h *ContainerHistory) { h.RestartRequestedID = "c" })
		}, RuleStart, "start"},
		"exit code unknown, restart by a rule": {func(in *Input) {
			unreported(in)
			own(in, v1.ContainerRestartPolicyNever, restart(v1.ContainerRestartRuleOnExitCodesOpIn, 3))
		}, RuleExitCodeUnknown, ""},
		"created, not started":                            {func(in *Input) { last(in).State = runtime.Created }, RuleCreated, "start"},
		"exited, result of an earlier start not observed": {func(in *Input) { ended(in, "0"); in.MayHaveUnobserved = true }, RuleNotObserved, ""},
		"start in progress": {func(in *Input) {
			last(in).State = runtime.Created
			in.InFlight["container/app"] = StartContainer{Container: "app"}
		}, RuleStart, "start"},
		"first exit":                 {func(in *Input) { ended(in, "0") }, RuleStart, "start"},
		"second exit":                {func(in *Input) { ended(in, "1") }, RuleCrashBackOff, ""},
		"second exit, back-off over": {func(in *Input) { ended(in, "1"); in.Now = in.Now.Add(10 * time.Second) }, RuleStart, "start"},
		"exit with a lower limit of the back-off": {func(in *Input) { ended(in, "9"); in.Node.MaxBackoff = time.Second; in.Now = in.Now.Add(time.Second) }, RuleStart, "start"},
		"completed": {func(in *Input) {
			ended(in, "0")
			last(in).ExitCode = 0
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyOnFailure
			add(in, "too")
		}, RuleCompleted, "pull"},
		"failed, restarted on failure": {func(in *Input) {
			ended(in, "0")
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyOnFailure
			add(in, "too")
		}, RuleStart, "start"},
		"completed after a failed probe, restarted on failure": {func(in *Input) {
			ended(in, "0")
			last(in).ExitCode = 0
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyOnFailure
			in.History.Terminations = map[string]Termination{"c": {Since: in.Now, HasFailedProbe: true}}
		}, RuleStart, "start"},
		"completed after a failed probe, never restarted": {func(in *Input) {
			ended(in, "0")
			last(in).ExitCode = 0
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			in.History.Terminations = map[string]Termination{"c": {Since: in.Now, HasFailedProbe: true}}
			add(in, "too")
		}, RuleCompleted, "pull"},
		"failed, never restarted": {func(in *Input) {
			ended(in, "0")
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			add(in, "too")
		}, RuleCompleted, "pull"},
		"failed, restarted by its own policy": {func(in *Input) {
			ended(in, "0")
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			own(in, v1.ContainerRestartPolicyOnFailure)
		}, RuleStart, "start"},
		"failed, restarted by a rule": {func(in *Input) {
			ended(in, "0")
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			own(in, v1.ContainerRestartPolicyNever, restart(v1.ContainerRestartRuleOnExitCodesOpIn, 0, 1))
		}, RuleStart, "start"},
		"failed again, restarted by a rule": {func(in *Input) {
			ended(in, "1")
			own(in, v1.ContainerRestartPolicyNever, restart(v1.ContainerRestartRuleOnExitCodesOpNotIn, 7))
		}, RuleCrashBackOff, ""},
		"failed, not restarted by its own policy": {func(in *Input) {
			ended(in, "0")
			own(in, v1.ContainerRestartPolicyNever)
			add(in, "too")
		}, RuleCompleted, "pull"},
		"failed, no rule matches": {func(in *Input) {
			ended(in, "0")
			own(in, v1.ContainerRestartPolicyNever, restart(v1.ContainerRestartRuleOnExitCodesOpIn, 2), restart(v1.ContainerRestartRuleOnExitCodesOpNotIn, 1))
			add(in, "too")
		}, RuleCompleted, "pull"},
		"not created": {func(in *Input) { in.Observed[0].Containers = nil }, RuleStart, "start"},
		"not created, start failed": {func(in *Input) {
			in.Observed[0].Containers = nil
			history(in, func(h *ContainerHistory) { h.StartFailure.RetryAt = in.Now.Add(1) })
		}, RuleStartFailed, ""},
		"not created, image missing": {func(in *Input) { in.Observed[0].Containers, in.History.Containers = nil, nil }, RuleImageMissing, "pull"},
		"not created, image changed": {func(in *Input) {
			in.Observed[0].Containers = nil
			history(in, func(h *ContainerHistory) { h.Image.Name = "a:2" })
		}, RuleImageMissing, "pull"},
		"not created, image used before": {func(in *Input) {
			in.Observed[0].Containers = nil
			history(in, func(h *ContainerHistory) { h.Image.Used = true })
		}, RuleStart, "start"},
		"image used before, pull policy Always": {func(in *Input) {
			in.Observed[0].Containers = nil
			always(in)
			history(in, func(h *ContainerHistory) { h.Image.Used = true })
		}, RuleImageMissing, "pull"},
		"pull failed": {func(in *Input) {
			in.Observed[0].Containers = nil
			noImage(in, Failure{Message: "no", RetryAt: in.Now.Add(1)})
		}, RuleImageMissing, ""},
		"pull failed permanently":     {func(in *Input) { in.Observed[0].Containers = nil; noImage(in, Failure{Message: "no", IsFinal: true}) }, RuleImageMissing, ""},
		"pull failed, retry due":      {func(in *Input) { in.Observed[0].Containers = nil; noImage(in, Failure{Message: "no", RetryAt: in.Now}) }, RuleImageMissing, "pull"},
		"volumes missing":             {func(in *Input) { in.Observed[0].Containers, in.History.VolumesReady = nil, false }, RuleVolumesMissing, "prepare"},
		"postStart hook not done":     {func(in *Input) { postStart(in, PostStartState{Due: true}, exec()) }, RulePostStartHookPending, "run hook"},
		"postStart sleep in progress": {func(in *Input) { postStart(in, PostStartState{Due: true, Since: in.Now.Add(-time.Second)}, sleeps(2)) }, RulePostStartHookPending, ""},
		"postStart sleep over": {func(in *Input) {
			postStart(in, PostStartState{Due: true, Since: in.Now.Add(-2 * time.Second)}, sleeps(2))
		}, RuleRunning, ""},
		"postStart hook done":                 {func(in *Input) { postStart(in, PostStartState{}, exec()) }, RuleRunning, ""},
		"postStart hook of a later container": {func(in *Input) { postStart(in, PostStartState{Due: true, Attempt: 1}, exec()) }, RuleRunning, ""},
		"postStart hook failed":               {func(in *Input) { postStart(in, PostStartState{Failed: true, Message: "exit 1"}, exec()) }, RulePostStartHookFailed, "stop"},
		"postStart hook failed, exited":       {func(in *Input) { postStart(in, PostStartState{Failed: true}, exec()); ended(in, "0") }, RuleStart, "start"},
		"postStart hook not done, restart requested": {func(in *Input) {
			postStart(in, PostStartState{Due: true}, exec())
			history(in, func(h *ContainerHistory) { h.RestartRequestedID = "c" })
		}, RuleRestartRequested, "stop"},
		"postStart hook not done, probes wait": {func(in *Input) {
			postStart(in, PostStartState{Due: true}, sleeps(2))
			probes(in, StartupProbe, ProbeState{})
		}, RulePostStartHookPending, ""},
		"stop in progress": {func(in *Input) {
			in.History.Terminations = map[string]Termination{"c": {Since: in.Now, Grace: time.Minute}}
		}, RuleTerminating, "stop"},
		"stop in progress, exited": {func(in *Input) {
			ended(in, "0")
			in.History.Terminations = map[string]Termination{"c": {Since: in.Now, Grace: time.Minute}}
		}, RuleStart, "start"},
		"restart requested, preStop hook": {func(in *Input) {
			last(in).Annotations[runtime.AnnotationPreStopHandler] = `{"exec":{"command":["a"]}}`
			history(in, func(h *ContainerHistory) { h.RestartRequestedID = "c" })
		}, RuleRestartRequested, "run hook"},
		"after an init container": {func(in *Input) {
			in.Observed[0].Containers = nil
			in.Desired.Object.Spec.InitContainers = []v1.Container{{Name: "i", Image: "a:1"}}
		}, RuleNotItsTurn, "pull"},
	}
	hit := map[RuleID]bool{RuleInitCompleted: true} // the rule of a completed init container; the transcripts test it
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := runs()
			test.change(&in)
			d := Next(in)
			i := slices.IndexFunc(d.Steps, func(s Step) bool { return s.Container == "app" })
			if i < 0 {
				t.Fatalf("got no step for container app\n%s", d)
			}
			rule := d.Steps[i].Rule
			hit[rule] = true
			verb := ""
			if len(d.Actions) > 0 {
				verb = d.Actions[0].Verb()
			}
			if rule != test.rule || verb != test.action {
				t.Errorf("got rule %s and first action %q, want %s and %q\n%s", rule, verb, test.rule, test.action, d)
			}
		})
	}
	for _, r := range containerRules {
		if !hit[r.id] {
			t.Errorf("rule %q: got no test case, want at least one", r.id)
		}
	}
}

func exec() *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"a"}}}
}

func sleeps(seconds int64) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: seconds}}
}

// postStart gives the container a hook h with the recorded state.
func postStart(in *Input, recorded PostStartState, h *v1.LifecycleHandler) {
	in.Desired.Object.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: h}
	c := &in.Observed[0].Containers[0]
	c.StartedAt = in.Now
	ch := in.History.Containers["app"]
	ch.PostStart = recorded
	in.History.Containers["app"] = ch
}

// probes gives the container a probe with the recorded state t.
func probes(in *Input, kind ProbeKind, t ProbeState) {
	p := &v1.Probe{PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
	switch c := &in.Desired.Object.Spec.Containers[0]; kind {
	case StartupProbe:
		c.StartupProbe = p
	case LivenessProbe:
		c.LivenessProbe = p
	case ReadinessProbe:
		c.ReadinessProbe = p
	}
	probed := in.History.ProbeStates["c"]
	probed.Since = in.Now
	in.History.ProbeStates = map[string]ContainerProbes{"c": probed.With(kind, t)}
}

func add(in *Input, name string) {
	in.Desired.Object.Spec.Containers = append(in.Desired.Object.Spec.Containers, v1.Container{Name: name, Image: "b:1"})
}

// own gives the container its own restart policy and rules.
func own(in *Input, policy v1.ContainerRestartPolicy, rules ...v1.ContainerRestartRule) {
	c := &in.Desired.Object.Spec.Containers[0]
	c.RestartPolicy, c.RestartPolicyRules = &policy, rules
}

func restart(op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) v1.ContainerRestartRule {
	return v1.ContainerRestartRule{
		Action:    v1.ContainerRestartRuleActionRestart,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes},
	}
}

// addCrashed adds a container that exited with an exit code that restarts all containers, and sets
// the state of the other container.
func addCrashed(in *Input, other runtime.ContainerState) {
	never, rule := v1.ContainerRestartPolicyNever, restart(v1.ContainerRestartRuleOnExitCodesOpIn, 42)
	rule.Action = v1.ContainerRestartRuleActionRestartAllContainers
	in.Desired.Object.Spec.Containers = append(in.Desired.Object.Spec.Containers, v1.Container{
		Name: "crashed", Image: "a:1", RestartPolicy: &never, RestartPolicyRules: []v1.ContainerRestartRule{rule},
	})
	inc := &in.Observed[0]
	inc.Containers[0].State = other
	inc.Containers = append(inc.Containers, runtime.Container{ID: "d", SandboxID: inc.ID, Name: "crashed", State: runtime.Exited, ExitCode: 42, Annotations: map[string]string{}})
}

// failedInit adds an init container that exited with exit code 3 and is restarted only if one of
// rules applies.
func failedInit(in *Input, rules ...v1.ContainerRestartRule) {
	never := v1.ContainerRestartPolicyNever
	in.Desired.Object.Spec.InitContainers = []v1.Container{{Name: "i", Image: "a:1", RestartPolicy: &never, RestartPolicyRules: rules}}
	last := &in.Observed[0].Containers[0]
	last.State, last.ExitCode = runtime.Exited, 3
}

func always(in *Input) {
	in.Desired.Object.Spec.Containers[0].ImagePullPolicy = v1.PullAlways
}

func noImage(in *Input, f Failure) {
	in.History.Containers["app"] = ContainerHistory{Image: Image{Name: "a:1", Failure: f}}
}

// changes makes the running container a container of an earlier manifest.
func changes(in *Input, now string) {
	in.Desired.HasFixedUID = true
	in.Desired.ContainerHashes = map[string]manifest.ContainerHash{"app": {StartHash: "v1:" + now}}
	in.Observed[0].Containers[0].Annotations[runtime.AnnotationStartHash] = "old"
}

// unreadable makes the journal of the desired pod unreadable, and sets its restart policy.
func unreadable(in *Input, policy v1.RestartPolicy) {
	in.JournalError = "its journal cannot be read"
	in.Desired.Object.Spec.RestartPolicy = policy
}
