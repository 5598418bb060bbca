package plan

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/runtime"
)

// lost returns the input of a pod of a cluster that restarts no container. According to its source, the
// pod runs, but the runtime does not list its sandbox.
func lost() Input {
	in := fresh()
	in.Desired.Traits = manifest.KindTraits(manifest.KindAPI)
	in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyNever
	in.Desired.Object.Status = v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{
		{Name: "app", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
	}}
	return in
}

// TestNext_Lost checks what happens to a pod of a cluster whose sandbox was lost.
func TestNext_Lost(t *testing.T) {
	wait := Verdict{Answer: Wait, Reason: "UnexpectedAdmissionError", Message: "no devices"}
	reject := Verdict{Answer: Reject, Reason: wait.Reason, Message: wait.Message}
	dead := func(code int32) func(*Input) {
		return func(in *Input) {
			inc := sandboxOf(in.Desired, false, runtime.Exited)
			inc.Containers[0].ExitCode = code
			in.Observed, in.History.ReleasedSandboxes = []runtime.Incarnation{inc}, map[string]bool{inc.ID: true}
		}
	}
	for name, test := range map[string]struct {
		change  func(*Input)
		verdict Verdict
		rule    RuleID
		reason  string // reason of the end of the pod
		failed  bool
	}{
		"not listed, admitted":           {nil, Verdict{}, RuleFinished, "", true},
		"not listed, waits":              {nil, wait, RuleNotAdmitted, "", false},
		"not listed, rejected":           {nil, reject, RuleFinished, wait.Reason, true},
		"stopped, admitted":              {dead(1), Verdict{}, RuleFinished, "", true},
		"stopped, waits":                 {dead(1), wait, RuleNotAdmitted, "", false},
		"stopped, rejected":              {dead(1), reject, RuleFinished, wait.Reason, true},
		"stopped after success, waits":   {dead(0), wait, RuleFinished, "", false},
		"stopped after success, rejects": {dead(0), reject, RuleFinished, "", false},
		"stopped, a new size waits":      {dead(1), Verdict{Answer: Wait, IsResize: true}, RuleFinished, "", true},
		"runs, waits": {func(in *Input) { in.Observed = []runtime.Incarnation{sandboxOf(in.Desired, true, runtime.Running)} },
			wait, RuleRun, "", false},
		"not listed, restarted": {func(in *Input) { in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyOnFailure },
			Verdict{}, RuleNoSandbox, "", false},
		"not listed, never ran": {func(in *Input) { in.Desired.Object.Status = v1.PodStatus{Phase: v1.PodPending} },
			Verdict{}, RuleNoSandbox, "", false},
		"not listed, of a file": {func(in *Input) { in.Desired.Traits = manifest.Traits{} },
			Verdict{}, RuleNoSandbox, "", false},
		"perhaps not observed": {func(in *Input) { in.MayHaveUnobserved = true },
			Verdict{}, RuleNoSandbox, "", false},
		"not listed, runtime unreachable": {func(in *Input) { in.Node.RuntimeReachable = false },
			reject, RuleRuntimeUnreachable, "", false},
		"not listed, journal unreadable": {func(in *Input) { in.JournalError = "journal is empty" },
			Verdict{}, RuleJournalUnreadable, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			in := lost()
			if test.change != nil {
				test.change(&in)
			}
			in.Verdict = test.verdict
			d := Next(in)
			if d.Rule != test.rule {
				t.Fatalf("got %s, want rule %s", d, test.rule)
			}
			if end := d.Finished; test.rule == RuleFinished && (end == nil || end.Failed != test.failed || end.Reason != test.reason) {
				t.Errorf("got end %+v, want failed %t and reason %q", end, test.failed, test.reason)
			}
		})
	}
}

// TestNext_AttachLimitExceeded checks when a pod fails because the node has reached a limit of attached
// volumes. A pod must wait for refs.AttachTimeout after its admission, even if the attachment failed
// earlier for another pod.
func TestNext_AttachLimitExceeded(t *testing.T) {
	const why = "Node has reached its volume attachment limit"
	for name, test := range map[string]struct {
		change func(*Input)
		rule   RuleID
	}{
		"admitted":                   {func(*Input) {}, RuleFinished},
		"just admitted":              {func(in *Input) { in.History.StartTime = in.Now }, RuleObjectsMissing},
		"shortly before the timeout": {func(in *Input) { in.History.StartTime = in.Now.Add(time.Nanosecond - refs.AttachTimeout) }, RuleObjectsMissing},
		"pod of a file":              {func(in *Input) { in.Desired.Traits = manifest.Traits{} }, RuleObjectsMissing},
		"limit not exceeded":         {func(in *Input) { in.Objects.AttachLimitMessage = "" }, RuleObjectsMissing},
		"runs":                       {func(in *Input) { in.Observed = []runtime.Incarnation{sandboxOf(in.Desired, true, runtime.Running)} }, RuleRun},
		"sandbox lost": {func(in *Input) {
			in.Observed, in.History.ReleasedSandboxes = []runtime.Incarnation{sandboxOf(in.Desired, false, runtime.Exited)}, map[string]bool{"s-u": true}
		}, RuleFinished},
		"waits for admission":   {func(in *Input) { in.Verdict = Verdict{Answer: Wait, Message: "no"} }, RuleNotAdmitted},
		"runtime unreachable":   {func(in *Input) { in.Node.RuntimeReachable = false }, RuleRuntimeUnreachable},
		"runtime not ready":     {func(in *Input) { in.Node.RuntimeReady = false }, RuleRuntimeNotReady},
		"pod network not ready": {func(in *Input) { in.Node.NetworkReady = false }, RuleNetworkNotReady},
		"network not ready, network of the host": {func(in *Input) {
			in.Node.NetworkReady, in.Desired.Object.Spec.HostNetwork = false, true
		}, RuleFinished},
		"perhaps not observed":  {func(in *Input) { in.MayHaveUnobserved = true }, RuleObjectsMissing},
		"sandbox being created": {func(in *Input) { in.InFlight["sandbox"] = RunSandbox{} }, RuleObjectsMissing},
		"journal unreadable": {func(in *Input) {
			in.JournalError, in.Desired.Object.Spec.RestartPolicy = "journal is empty", v1.RestartPolicyNever
		}, RuleJournalUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			in := fresh()
			in.Desired.Traits = manifest.KindTraits(manifest.KindAPI)
			in.Objects.MissingMessage, in.Objects.AttachLimitMessage = "AttachVolume.Attach failed", why
			in.History.StartTime = in.Now.Add(-refs.AttachTimeout)
			test.change(&in)
			d := Next(in)
			if d.Rule != test.rule {
				t.Fatalf("got %s, want rule %s", d, test.rule)
			}
			end := d.Finished
			if test.rule != RuleFinished {
				if end != nil {
					t.Errorf("got end %+v, want none", end)
				}
				want := time.Time{}
				if at := in.History.StartTime.Add(refs.AttachTimeout); in.Now.Before(at) {
					want = at
				}
				if !d.WakeAt.Equal(want) {
					t.Errorf("got WakeAt %v, want %v", d.WakeAt, want)
				}
				return
			}
			if end == nil || !end.Failed || !end.IsRejected || end.Reason != "VolumeAttachmentLimitExceeded" || end.Message != "Pod was rejected: "+why || d.Why != end.Message {
				t.Errorf("got end %+v and why %q, want failed because of the limit, and its message as why", end, d.Why)
			}
		})
	}
}

// TestNext_FailsAfterAdmission checks that a pod of a cluster does not fail because of its containers
// while podd has not decided whether it admits the pod.
func TestNext_FailsAfterAdmission(t *testing.T) {
	failures := 0 // inputs with which the pod fails because of its containers if it is admitted
	rapid.Check(t, func(t *rapid.T) {
		in := (&choices{data: rapid.SliceOfN(rapid.Byte(), 200, 300).Draw(t, "choices"), start: time.Now()}).input()
		if in.Desired == nil {
			return
		}
		in.Desired.Traits, in.Successor, in.Verdict.Answer = manifest.KindTraits(manifest.KindAPI), nil, Wait
		in.Desired.Object.Spec.RestartPolicy = rapid.SampledFrom([]v1.RestartPolicy{v1.RestartPolicyOnFailure, v1.RestartPolicyNever}).Draw(t, "policy")
		in.Node.RuntimeReachable, in.History.Finished, in.History.ReleasedSandboxes, in.PodDirs = true, nil, map[string]bool{}, nil
		for i := range in.Observed {
			inc := &in.Observed[i]
			inc.Ready, inc.Foreign, inc.UID = false, false, in.Desired.UID
			inc.Annotations = map[string]string{runtime.AnnotationPodHash: in.Desired.Hash}
			in.History.ReleasedSandboxes[inc.ID] = true
			for j := range inc.Containers {
				if c := &inc.Containers[j]; c.State == runtime.Running || c.State == runtime.Unknown {
					c.State, c.ExitCode = runtime.Exited, 137
				}
			}
		}
		if end := Next(in).Finished; end != nil && end.Failed && end.Reason == "" {
			t.Fatalf("got end %+v before the verdict, want none", end)
		}
		in.Verdict.Answer = Admit
		if end := Next(in).Finished; end != nil && end.Failed && end.Reason == "" {
			failures++
		}
	})
	if failures == 0 {
		t.Error("pods that fail after they were admitted: got none, want some")
	}
}
