package runonce

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/exit"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

const (
	always    = v1.RestartPolicyAlways
	onFailure = v1.RestartPolicyOnFailure
	never     = v1.RestartPolicyNever
)

// TestJudge checks how many pods judge starts, whether the run ends, and its exit code. The time in each
// case is 10 s after the start of the run.
func TestJudge(t *testing.T) {
	db, job, retried := newPod(t, "db", always, "pg"), newPod(t, "job", never, "main", "helper"), newPod(t, "retried", onFailure, "c")
	ready := withReportAt(db, 1, setReady)
	restartsOn42, restartsOnAny := newPod(t, "a", never, "c"), newPod(t, "b", never, "c")
	setRestartRule(restartsOn42, v1.ContainerRestartRuleOnExitCodesOpIn, 42)
	setRestartRule(restartsOnAny, v1.ContainerRestartRuleOnExitCodesOpNotIn)
	pull := func(status, count int) func(*state.Report) {
		return addStep("main", plan.Failure{Count: count, Reason: "ErrImagePull", HTTPStatus: status, Message: "pulling x: no", RetryAt: after(99)})
	}
	tests := []struct {
		name    string
		pods    []runPod
		in      judgeInput
		start   int     // number of pods in DesiredPods
		outcome outcome // "" if the run continues
		code    int     // exit code of the run
	}{
		{name: "long-running pods start first", pods: []runPod{job, db}, start: 1},
		{name: "long-running pod not ready yet", pods: []runPod{job, withReportAt(db, 1)}, start: 1},
		{name: "long-running pod ready, so the others start", pods: []runPod{job, ready}, start: 2},
		{name: "long-running pod no longer ready", pods: []runPod{job, withReportAt(ready, 2)}, in: judgeInput{CompletionPodsStarted: true}, start: 2},
		{name: "no long-running pods", pods: []runPod{job, retried}, start: 2},
		{name: "only long-running pods", pods: []runPod{ready}, start: 1, outcome: outcomeReady},
		{name: "succeeded", pods: []runPod{withReportAt(job, 2, setExit("main", 0, 1, 1), setFinished)}, start: 1, outcome: outcomeCompleted},
		{name: "one failed", pods: []runPod{withReportAt(job, 2, setExit("main", 3, 1, 1), setExit("helper", 0, 1, 1), setFinished)}, start: 1, outcome: outcomeCompleted, code: 3},
		{name: "two containers failed", pods: []runPod{withReportAt(job, 2, setExit("main", 3, 1, 1), setExit("helper", 3, 1, 1), setFinished)}, start: 1, outcome: outcomeCompleted, code: 1},
		{name: "two pods failed", pods: []runPod{
			withReportAt(job, 2, setExit("main", 3, 1, 1), setFinished),
			withReportAt(newPod(t, "b", never, "c"), 2, setExit("c", 4, 1, 1), setFinished),
		}, start: 2, outcome: outcomeCompleted, code: 1},
		{name: "one failed, one running", pods: []runPod{withReportAt(job, 2, setExit("main", 3, 1, 1), setFinished), withReportAt(retried, 1)}, start: 2},
		{name: "crash of a long-running pod does not determine the code", pods: []runPod{
			withReportAt(ready, 3, setExit("pg", 9, 2, 1)), withReportAt(job, 2, setExit("main", 0, 1, 1), setFinished),
		}, in: judgeInput{CompletionPodsStarted: true}, start: 2, outcome: outcomeCompleted},
		{name: "exit of a sidecar does not determine the code", pods: []runPod{
			withReportAt(newPod(t, "s", never, "sidecar:log", "c"), 2, setExit("log", 137, 1, 1), setExit("c", 5, 1, 1), setFinished),
		}, start: 1, outcome: outcomeCompleted, code: 5},
		{name: "sandbox disappeared before the pod ended", pods: []runPod{withReportAt(job, 2, setFinished, func(r *state.Report) { r.Finished.Failed = true })}, start: 1, outcome: outcomeCompleted, code: exit.Internal},
		{name: "evicted", pods: []runPod{withReportAt(job, 2, setEvicted)}, start: 1, outcome: outcomeCompleted, code: exit.Internal},
		{name: "evicted and killed", pods: []runPod{withReportAt(job, 2, setExit("main", 137, 1, 1), setEvicted)}, start: 1, outcome: outcomeCompleted, code: exit.Internal},
		{name: "exit code 256", pods: []runPod{withReportAt(job, 2, setExit("main", 256, 1, 1), setFinished)}, start: 1, outcome: outcomeCompleted, code: 1},
		{name: "timed out", pods: []runPod{withReportAt(job, 1)}, in: judgeInput{Timeout: 9 * time.Second}, start: 1, outcome: outcomeTimedOut, code: exit.Timeout},
		{name: "before the timeout", pods: []runPod{withReportAt(job, 1)}, in: judgeInput{Timeout: 11 * time.Second}, start: 1},
		{name: "ended before an interrupt and after the timeout", pods: []runPod{withReportAt(job, 2, setExit("main", 3, 1, 1), setFinished)}, in: judgeInput{Timeout: time.Second, Interrupted: true}, start: 1, outcome: outcomeCompleted, code: 3},
		{name: "interrupted", pods: []runPod{withReportAt(job, 1)}, in: judgeInput{Interrupted: true, Timeout: time.Second}, start: 1, outcome: outcomeInterrupted, code: exit.Interrupted},
		{name: "writing the output fails", pods: []runPod{withReportAt(job, 1)}, in: judgeInput{FatalErr: errors.New("writing stdout: broken pipe")}, start: 1, outcome: outcomeBroken, code: exit.Internal},
		{name: "pull fails once", pods: []runPod{withReportAt(job, 1, pull(0, 1))}, start: 1},
		{name: "pull fails three times", pods: []runPod{withReportAt(job, 1, pull(0, 3))}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "unknown image", pods: []runPod{withReportAt(job, 1, pull(404, 1))}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "unauthorized", pods: []runPod{withReportAt(job, 1, pull(401, 1))}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "registry rate limit", pods: []runPod{withReportAt(job, 1, pull(429, 2))}, start: 1},
		{name: "invalid image name", pods: []runPod{withReportAt(job, 1, addStep("main", plan.Failure{Count: 1, IsFinal: true, Reason: "InvalidImageName"}))}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "start fails four times", pods: []runPod{withReportAt(job, 1, addStep("main", plan.Failure{Count: 4, Reason: "CreateContainerError"}))}, start: 1},
		{name: "start fails five times", pods: []runPod{withReportAt(job, 1, addStep("main", plan.Failure{Count: 5, Reason: "CreateContainerError"}))}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "creating the sandbox fails five times", pods: []runPod{withReportAt(job, 1, func(r *state.Report) { r.Decision.Failure.Count = 5 })}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "rejected by admission", pods: []runPod{withReportAt(job, 1, setWaiting(plan.RuleNotAdmitted, "host port 80 is taken", 1), setFinal)}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "waits for a network", pods: []runPod{withReportAt(job, 1, setWaiting(plan.RuleNetworkNotReady, "no CNI", 1))}, start: 1},
		{name: "waits too long", pods: []runPod{withReportAt(job, 1, setWaiting(plan.RuleNetworkNotReady, "no CNI", -20))}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "waits for a running pod", pods: []runPod{withReportAt(job, 1), withReportAt(retried, 1, setBlocked, setWaiting(plan.RuleNotAdmitted, "no cpu", -99))}, start: 2},
		{name: "waits for a pod without a report", pods: []runPod{job, withReportAt(retried, 1, setBlocked, setWaiting(plan.RuleNotAdmitted, "no cpu", -99))}, start: 2},
		{name: "waits for a pod that is winding down", pods: []runPod{withReportAt(job, 1, setFinished), withReportAt(retried, 1, setBlocked, setWaiting(plan.RuleNotAdmitted, "no cpu", -99))}, start: 2},
		{name: "waits only for long-running pods", pods: []runPod{withReportAt(db, 1, setReady, setSince(-50)), withReportAt(retried, 1, setBlocked, setWaiting(plan.RuleNotAdmitted, "no cpu", -99))}, start: 2, outcome: outcomeFailing, code: exit.Internal},
		{name: "waited for a pod that has just released its reservations", pods: []runPod{withReportAt(job, 1, setFinished, setCleanedUp, setSince(9)), withReportAt(retried, 1, setBlocked, setWaiting(plan.RuleNotAdmitted, "no cpu", -99))}, start: 2},
		{name: "waits although no pod has reservations", pods: []runPod{withReportAt(job, 1, setFinished, setCleanedUp, setSince(-30)), withReportAt(retried, 1, setBlocked, setWaiting(plan.RuleNotAdmitted, "no cpu", -99))}, start: 2, outcome: outcomeFailing, code: exit.Internal},
		{name: "waits for a device plugin after it has waited for a pod", pods: []runPod{
			withReportAt(withReportAt(job, 1, setBlocked, setWaiting(plan.RuleNotAdmitted, "no device", -99)), 9, setWaiting(plan.RuleNotAdmitted, "no plugin", -99)),
		}, start: 1},
		{name: "long-running pod waits for pods that have not started", pods: []runPod{job, withReportAt(db, 1, setBlocked, setWaiting(plan.RuleNotAdmitted, "no cpu", -21))}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "waits with running containers", pods: []runPod{withReportAt(job, 1, setWaiting(plan.RuleRuntimeUnreachable, "", -20), setObserved(true))}, start: 1},
		{name: "second crash of a long-running pod", pods: []runPod{withReportAt(db, 1, setExit("pg", 1, 2, 1)), job}, start: 1},
		{name: "third crash of a long-running pod", pods: []runPod{withReportAt(db, 1, setExit("pg", 1, 3, 1)), job}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "third exit of a long-running pod with code 0", pods: []runPod{withReportAt(db, 1, setExit("pg", 0, 3, 1)), job}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "third success of an init container", pods: []runPod{withReportAt(newPod(t, "x", always, "init:i", "c"), 1, setExit("i", 0, 3, 1)), job}, start: 1},
		{name: "fifth crash with OnFailure", pods: []runPod{withReportAt(retried, 1, setExit("c", 7, 5, 1))}, start: 1},
		{name: "sixth crash with OnFailure", pods: []runPod{withReportAt(retried, 1, setExit("c", 7, 6, 1))}, start: 1, outcome: outcomeFailing, code: 7},
		{name: "fifth crash with a restart rule", pods: []runPod{withReportAt(restartsOn42, 1, setExit("c", 42, 5, 1))}, start: 1},
		{name: "sixth crash with a restart rule", pods: []runPod{withReportAt(restartsOn42, 1, setExit("c", 42, 6, 1))}, start: 1, outcome: outcomeFailing, code: 42},
		{name: "sixth crash without a matching restart rule", pods: []runPod{withReportAt(restartsOn42, 1, setExit("c", 7, 6, 1))}, start: 1},
		{name: "long-running because of a restart rule", pods: []runPod{withReportAt(restartsOnAny, 1, setReady), job}, start: 2},
		{name: "third exit of a pod that is long-running because of a rule", pods: []runPod{withReportAt(restartsOnAny, 1, setExit("c", 0, 3, 1))}, start: 1, outcome: outcomeFailing, code: exit.Internal},
		{name: "sixth crash and another failure", pods: []runPod{withReportAt(retried, 1, setExit("c", 7, 6, 1)), withReportAt(job, 1, setExit("main", 3, 1, 1), setFinished)}, start: 2, outcome: outcomeFailing, code: 1},
		{name: "no image and another failure", pods: []runPod{withReportAt(job, 1, pull(404, 1)), withReportAt(newPod(t, "b", never, "c"), 2, setExit("c", 4, 1, 1), setFinished)}, start: 2, outcome: outcomeFailing, code: exit.Internal},
		{name: "crashes of a sidecar of a pod with Never", pods: []runPod{withReportAt(newPod(t, "s", never, "sidecar:log", "c"), 1, setExit("log", 1, 9, 1))}, start: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := test.in
			in.Pods, in.StartTime, in.Now = test.pods, start, after(10)
			j := judge(in)
			if len(j.DesiredPods) != test.start {
				t.Errorf("got DesiredPods %v, want %d pods", j.DesiredPods, test.start)
			}
			var outcome outcome
			code := 0
			if j.Verdict != nil {
				outcome, code = j.Verdict.Outcome, j.Verdict.Code
			}
			if outcome != test.outcome || code != test.code {
				t.Errorf("got outcome %q, exit code %d; want outcome %q, exit code %d", outcome, code, test.outcome, test.code)
			}
		})
	}
}

// TestJudge_NextCheck checks the time at which judge must be called again even if nothing changes.
func TestJudge_NextCheck(t *testing.T) {
	job := newPod(t, "job", never, "main")
	tests := []struct {
		name string
		in   judgeInput
		want time.Time
	}{
		{"no time limit", judgeInput{Pods: []runPod{withReportAt(job, 1)}}, time.Time{}},
		{"timeout", judgeInput{Pods: []runPod{withReportAt(job, 1)}, Timeout: time.Minute}, after(60)},
		{"waits for a running pod", judgeInput{Pods: []runPod{withReportAt(job, 1), withReportAt(newPod(t, "b", never, "c"), 1, setBlocked, setWaiting(plan.RuleNotAdmitted, "no cpu", 5))}}, time.Time{}},
		{"limit of a wait", judgeInput{Pods: []runPod{withReportAt(job, 1, setWaiting(plan.RuleNetworkNotReady, "no CNI", 5))}, Timeout: time.Minute}, after(35)},
	}
	for _, test := range tests {
		test.in.StartTime, test.in.Now = start, after(10)
		if got := judge(test.in).NextCheck; !got.Equal(test.want) {
			t.Errorf("%s: got NextCheck %v, want %v", test.name, got, test.want)
		}
	}
}

// TestWithReport checks that ReadyAt is the time of the first report in which the pod is ready. A report
// without a desired version must not replace the previous report.
func TestWithReport(t *testing.T) {
	p := withReportAt(withReportAt(newPod(t, "db", always, "pg"), 1, setReady), 2, setReady)
	if !p.ReadyAt.Equal(after(1)) {
		t.Errorf("after two reports: got ReadyAt %v, want %v", p.ReadyAt, after(1))
	}
	removed := newReport(p)
	removed.Version = nil
	if diff := cmp.Diff(p.Report, p.withReport(removed, after(3)).Report, cmp.Comparer(func(a, b *state.Report) bool { return a == b })); diff != "" {
		t.Errorf("after a report without a desired version (-want +got):\n%s", diff)
	}
}
