package runonce

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/exit"
	"podd/reconcile"
	"podd/reconcile/plan"
)

const (
	always    = v1.RestartPolicyAlways
	onFailure = v1.RestartPolicyOnFailure
	never     = v1.RestartPolicyNever
)

// TestJudge: what is started, and when a run ends with which code.
func TestJudge(t *testing.T) {
	db, job, again := podOf(t, "db", always, "pg"), podOf(t, "job", never, "main", "helper"), podOf(t, "again", onFailure, "c")
	ready := heard(db, 1, isReady)
	ruled, rules := podOf(t, "ruled", never, "c"), podOf(t, "rules", never, "c")
	byRule(ruled, v1.ContainerRestartRuleOnExitCodesOpIn, 42)
	byRule(rules, v1.ContainerRestartRuleOnExitCodesOpNotIn)
	pull := func(status, count int) func(*reconcile.Report) {
		return step("main", plan.Failure{Count: count, Reason: "ErrImagePull", Status: status, Message: "pulling x: no", Until: after(99)})
	}
	tests := []struct {
		name    string
		pods    []Pod
		in      Input
		start   int // how many pods
		outcome Outcome
		code    int
	}{
		{name: "the pods that go on first", pods: []Pod{job, db}, start: 1},
		{name: "not ready yet", pods: []Pod{job, heard(db, 1)}, start: 1},
		{name: "ready, so the others", pods: []Pod{job, ready}, start: 2},
		{name: "no longer ready", pods: []Pod{job, heard(ready, 2)}, in: Input{Released: true}, start: 2},
		{name: "nothing to wait for", pods: []Pod{job, again}, start: 2},
		{name: "only such that go on", pods: []Pod{ready}, start: 1, outcome: Ready},
		{name: "succeeded", pods: []Pod{heard(job, 2, exited("main", 0, 1, 1), isFinished)}, start: 1, outcome: Ended},
		{name: "one failed", pods: []Pod{heard(job, 2, exited("main", 3, 1, 1), exited("helper", 0, 1, 1), isFinished)}, start: 1, outcome: Ended, code: 3},
		{name: "two containers failed", pods: []Pod{heard(job, 2, exited("main", 3, 1, 1), exited("helper", 3, 1, 1), isFinished)}, start: 1, outcome: Ended, code: 1},
		{name: "two pods failed", pods: []Pod{
			heard(job, 2, exited("main", 3, 1, 1), isFinished),
			heard(podOf(t, "b", never, "c"), 2, exited("c", 4, 1, 1), isFinished),
		}, start: 2, outcome: Ended, code: 1},
		{name: "one failed, one runs", pods: []Pod{heard(job, 2, exited("main", 3, 1, 1), isFinished), heard(again, 1)}, start: 2},
		{name: "crashes of those that go on are not the code", pods: []Pod{
			heard(ready, 3, exited("pg", 9, 2, 1)), heard(job, 2, exited("main", 0, 1, 1), isFinished),
		}, in: Input{Released: true}, start: 2, outcome: Ended},
		{name: "a sidecar's end is not the code", pods: []Pod{
			heard(podOf(t, "s", never, "sidecar:log", "c"), 2, exited("log", 137, 1, 1), exited("c", 5, 1, 1), isFinished),
		}, start: 1, outcome: Ended, code: 5},
		{name: "lost before it ended", pods: []Pod{heard(job, 2, isFinished, func(r *reconcile.Report) { r.Finished.Failed = true })}, start: 1, outcome: Ended, code: exit.Internal},
		{name: "evicted", pods: []Pod{heard(job, 2, isEvicted)}, start: 1, outcome: Ended, code: exit.Internal},
		{name: "evicted and killed", pods: []Pod{heard(job, 2, exited("main", 137, 1, 1), isEvicted)}, start: 1, outcome: Ended, code: exit.Internal},
		{name: "a code of 256", pods: []Pod{heard(job, 2, exited("main", 256, 1, 1), isFinished)}, start: 1, outcome: Ended, code: 1},
		{name: "timed out", pods: []Pod{heard(job, 1)}, in: Input{Timeout: 9 * time.Second}, start: 1, outcome: TimedOut, code: exit.Timeout},
		{name: "in time", pods: []Pod{heard(job, 1)}, in: Input{Timeout: 11 * time.Second}, start: 1},
		{name: "ended in that moment", pods: []Pod{heard(job, 2, exited("main", 3, 1, 1), isFinished)}, in: Input{Timeout: time.Second, Interrupted: true}, start: 1, outcome: Ended, code: 3},
		{name: "interrupted", pods: []Pod{heard(job, 1)}, in: Input{Interrupted: true, Timeout: time.Second}, start: 1, outcome: Interrupted, code: exit.Interrupted},
		{name: "broken", pods: []Pod{heard(job, 1)}, in: Input{Broken: errors.New("writing stdout: broken pipe")}, start: 1, outcome: Broken, code: exit.Internal},
		{name: "pull fails once", pods: []Pod{heard(job, 1, pull(0, 1))}, start: 1},
		{name: "pull fails three times", pods: []Pod{heard(job, 1, pull(0, 3))}, start: 1, outcome: Failing, code: exit.Internal},
		{name: "no such image", pods: []Pod{heard(job, 1, pull(404, 1))}, start: 1, outcome: Failing, code: exit.Internal},
		{name: "not allowed", pods: []Pod{heard(job, 1, pull(401, 1))}, start: 1, outcome: Failing, code: exit.Internal},
		{name: "registry has too much to do", pods: []Pod{heard(job, 1, pull(429, 2))}, start: 1},
		{name: "no name", pods: []Pod{heard(job, 1, step("main", plan.Failure{Count: 1, Final: true, Reason: "InvalidImageName"}))}, start: 1, outcome: Failing, code: exit.Internal},
		{name: "start fails", pods: []Pod{heard(job, 1, step("main", plan.Failure{Count: 4, Reason: "CreateContainerError"}))}, start: 1},
		{name: "start fails again", pods: []Pod{heard(job, 1, step("main", plan.Failure{Count: 5, Reason: "CreateContainerError"}))}, start: 1, outcome: Failing, code: exit.Internal},
		{name: "no sandbox", pods: []Pod{heard(job, 1, func(r *reconcile.Report) { r.Decision.Failure.Count = 5 })}, start: 1, outcome: Failing, code: exit.Internal},
		{name: "rejected", pods: []Pod{heard(job, 1, waitsFor(plan.RuleNotAdmitted, "host port 80 is taken", 1), isFinal)}, start: 1, outcome: Failing, code: exit.Internal},
		{name: "waits for a network", pods: []Pod{heard(job, 1, waitsFor(plan.RuleNetworkNotReady, "no CNI", 1))}, start: 1},
		{name: "waits too long", pods: []Pod{heard(job, 1, waitsFor(plan.RuleNetworkNotReady, "no CNI", -20))}, start: 1, outcome: Failing, code: exit.Internal},
		{name: "waits under a pod that runs", pods: []Pod{heard(job, 1, waitsFor(plan.RuleRuntimeUnreachable, "", -20), observed(true))}, start: 1},
		{name: "second crash", pods: []Pod{heard(db, 1, exited("pg", 1, 2, 1)), job}, start: 1},
		{name: "third crash", pods: []Pod{heard(db, 1, exited("pg", 1, 3, 1)), job}, start: 1, outcome: Failing, code: exit.Internal},
		{name: "third end is a crash as well", pods: []Pod{heard(db, 1, exited("pg", 0, 3, 1)), job}, start: 1, outcome: Failing, code: exit.Internal},
		{name: "an init container that was done thrice", pods: []Pod{heard(podOf(t, "x", always, "init:i", "c"), 1, exited("i", 0, 3, 1)), job}, start: 1},
		{name: "fifth crash of one that may", pods: []Pod{heard(again, 1, exited("c", 7, 5, 1))}, start: 1},
		{name: "sixth crash of one that may", pods: []Pod{heard(again, 1, exited("c", 7, 6, 1))}, start: 1, outcome: Failing, code: 7},
		{name: "fifth crash by a rule", pods: []Pod{heard(ruled, 1, exited("c", 42, 5, 1))}, start: 1},
		{name: "sixth crash by a rule", pods: []Pod{heard(ruled, 1, exited("c", 42, 6, 1))}, start: 1, outcome: Failing, code: 42},
		{name: "sixth exit, of no rule", pods: []Pod{heard(ruled, 1, exited("c", 7, 6, 1))}, start: 1},
		{name: "goes on by a rule", pods: []Pod{heard(rules, 1, isReady), job}, start: 2},
		{name: "third end by such a rule", pods: []Pod{heard(rules, 1, exited("c", 0, 3, 1))}, start: 1, outcome: Failing, code: exit.Internal},
		{name: "sixth crash and another failure", pods: []Pod{heard(again, 1, exited("c", 7, 6, 1)), heard(job, 1, exited("main", 3, 1, 1), isFinished)}, start: 2, outcome: Failing, code: 1},
		{name: "no image and another failure", pods: []Pod{heard(job, 1, pull(404, 1)), heard(podOf(t, "b", never, "c"), 2, exited("c", 4, 1, 1), isFinished)}, start: 2, outcome: Failing, code: exit.Internal},
		{name: "crashes of a Never pod's sidecar", pods: []Pod{heard(podOf(t, "s", never, "sidecar:log", "c"), 1, exited("log", 1, 9, 1))}, start: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := test.in
			in.Pods, in.Began, in.Now = test.pods, at, after(10)
			j := Judge(in)
			if len(j.Start) != test.start {
				t.Errorf("starts %v, want %d pods", j.Start, test.start)
			}
			var outcome Outcome
			code := 0
			if j.Verdict != nil {
				outcome, code = j.Verdict.Outcome, j.Verdict.Code
			}
			if outcome != test.outcome || code != test.code {
				t.Errorf("verdict %q with code %d, want %q with %d", outcome, code, test.outcome, test.code)
			}
		})
	}
}

// TestJudgeWakes: what time decides is not waited for in vain.
func TestJudgeWakes(t *testing.T) {
	job := podOf(t, "job", never, "main")
	tests := []struct {
		name string
		in   Input
		want time.Time
	}{
		{"nothing", Input{Pods: []Pod{heard(job, 1)}}, time.Time{}},
		{"timeout", Input{Pods: []Pod{heard(job, 1)}, Timeout: time.Minute}, after(60)},
		{"patience", Input{Pods: []Pod{heard(job, 1, waitsFor(plan.RuleNetworkNotReady, "no CNI", 5))}, Timeout: time.Minute}, after(35)},
	}
	for _, test := range tests {
		test.in.Began, test.in.Now = at, after(10)
		if got := Judge(test.in).Wake; !got.Equal(test.want) {
			t.Errorf("%s: wakes at %v, want %v", test.name, got, test.want)
		}
	}
}

// TestSeeKeepsWhatWasWanted: reports of a pod that is being removed do not
// change how it did, and it stays ready since when it was so first.
func TestSeeKeepsWhatWasWanted(t *testing.T) {
	p := heard(heard(podOf(t, "db", always, "pg"), 1, isReady), 2, isReady)
	if !p.ReadyAt.Equal(after(1)) {
		t.Errorf("ready at %v, want %v", p.ReadyAt, after(1))
	}
	gone := report(p)
	gone.Version = nil
	if diff := cmp.Diff(p.Report, p.WithReport(gone, after(3)).Report, cmp.Comparer(func(a, b *reconcile.Report) bool { return a == b })); diff != "" {
		t.Error("a report of a pod that is not wanted any more counts")
	}
}
