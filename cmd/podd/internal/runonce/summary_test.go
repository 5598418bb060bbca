package runonce

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/cmd/podd/internal/exit"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// newTestResultOf returns the result of a run of pods that began at start and ended at after(seconds).
// lastLines contains the last lines of output by container name.
func newTestResultOf(v verdict, seconds float64, lastLines map[string][]string, pods ...runPod) runResult {
	s := rowBuilder{verdict: v, startTime: start, now: after(seconds), lastLines: func(_ *runPod, c string) []string { return lastLines[c] }}
	several := len(pods) > 1 || slices.ContainsFunc(pods, func(p runPod) bool { return len(p.containers()) > 1 })
	return newResult(v, s.rows(pods), len(pods), several, start, after(seconds))
}

// TestSummary checks the text that podd prints at the end of a run.
func TestSummary(t *testing.T) {
	build, db := newPod(t, "build", never, "main"), newPod(t, "db", always, "pg")
	job, retried := newPod(t, "job", never, "init:setup", "c"), newPod(t, "retried", onFailure, "c")
	db = withReportAt(db, 1.2, setReady)
	oom := newPod(t, "test", never, "unit")
	oom = withReportAt(oom, 12, setExit("unit", 137, 1, 3), setExitReason("unit", "OOMKilled", ""), setFinished)
	failing := withReportAt(newPod(t, "web", never, "c"), 1, addStep("c", plan.Failure{Count: 1, HTTPStatus: 404, Reason: "ErrImagePull", Message: "pulling r.example/web:2 for default/web-run1: 404 from r.example: no such image"}))
	crashing := withReportAt(newPod(t, "db", always, "pg"), 4, setExit("pg", 1, 3, 0.8))
	tests := []struct {
		name    string
		verdict verdict
		pods    []runPod
		last    map[string][]string // last lines of output by container name
		want    string
	}{
		{"three pods", verdict{Outcome: outcomeCompleted, Code: 137}, []runPod{
			withReportAt(build, 9, setExit("main", 0, 1, 8.1), setFinished), db, oom,
		}, nil, `podd: 3 pods, 1 failed, 12.4s
  ok    build     exit 0 in 8.1s
  ok    db        ready in 1.2s, stopped
  FAIL  test/unit OOMKilled (137) after 3.0s: limit 256Mi, ci/test.yaml:10
`},
		{"one pod", verdict{Outcome: outcomeCompleted, Code: 3}, []runPod{
			withReportAt(build, 9, setExit("main", 3, 1, 0.84), setFinished),
		}, map[string][]string{"main": {"one", "two \"2\""}}, `podd: 1 pod, 1 failed, 12.4s
  FAIL  build/main exit 3 after 0.8s: "two \"2\""
`},
		{"activeDeadlineSeconds exceeded", verdict{Outcome: outcomeCompleted, Code: 124}, []runPod{
			withReportAt(build, 9, setExit("main", 143, 1, 8), func(r *state.Report) {
				r.Finished = &plan.PodEnd{Failed: true, Reason: plan.ReasonDeadlineExceeded, Message: "Pod was active"}
			}),
		}, nil, `podd: 1 pod, 1 failed, 12.4s
  FAIL  build DeadlineExceeded: Pod was active
`},
		{"evicted", verdict{Outcome: outcomeCompleted, Code: exit.Internal}, []runPod{
			withReportAt(build, 9, setExit("main", 137, 1, 8), setEvicted), withReportAt(job, 9, setEvicted),
		}, map[string][]string{"main": {"one"}}, `podd: 2 pods, 2 failed, 12.4s
  FAIL  build Evicted: Pod exceeds its limit
  FAIL  job   Evicted: Pod exceeds its limit
`},
		{"termination message", verdict{Outcome: outcomeCompleted, Code: 3}, []runPod{
			withReportAt(build, 9, setExit("main", 3, 1, 0.84), setMessage("main", "\n\x1bno disk\nmore\n"), setFinished),
		}, map[string][]string{"main": {"one"}}, `podd: 1 pod, 1 failed, 12.4s
  FAIL  build/main exit 3 after 0.8s: "no disk"
`},
		{"output with the full name of the pod", verdict{Outcome: outcomeCompleted, Code: 3}, []runPod{
			withReportAt(build, 9, setExit("main", 3, 1, 0.84), setFinished),
		}, map[string][]string{"main": {"no route to build-run1"}}, `podd: 1 pod, 1 failed, 12.4s
  FAIL  build/main exit 3 after 0.8s: "no route to build-run1"
`},
		{"several containers with their last lines", verdict{Outcome: outcomeCompleted, Code: 143}, []runPod{
			withReportAt(job, 9, setExit("setup", 143, 1, 90), setFinished),
		}, map[string][]string{"setup": {"1", "2", "3", "4", "5", "6"}}, `podd: 1 pod, 1 failed, 12.4s
  FAIL  job/setup SIGTERM (143) after 1m30s: "6"
          | 2
          | 3
          | 4
          | 5
          | 6
`},
		{"program that does not exist", verdict{Outcome: outcomeCompleted, Code: 128}, []runPod{
			withReportAt(build, 9, setExit("main", 128, 1, 0), setExitReason("main", "StartError",
				"failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: \"x\": executable file not found in $PATH: unknown"), setFinished),
		}, nil, `podd: 1 pod, 1 failed, 12.4s
  FAIL  build/main did not start: exec: "x": executable file not found in $PATH
`},
		{"success on a later attempt", verdict{Outcome: outcomeCompleted}, []runPod{
			withReportAt(retried, 9, setExit("c", 0, 3, 2), setFinished), withReportAt(db, 5, setReady, setExit("pg", 1, 1, 1)),
		}, nil, `podd: 2 pods, 0 failed, 12.4s
  ok    retried exit 0 in 2.0s, on attempt 3
  ok    db      ready in 1.2s, restarted once, stopped
`},
		{"unknown image", verdict{Outcome: outcomeFailing, Code: exit.Internal, Failure: podFailure{Pod: &failing, Container: "c", Code: exit.Internal, Why: failing.Report.Decision.Steps[0].Failure.Message}}, []runPod{
			failing, withReportAt(build, 1), job,
		}, nil, `podd: 3 pods, 1 failed, 12.4s: stopped, because web cannot succeed
  FAIL  web/c pulling r.example/web:2 for default/web: 404 from r.example: no such image
  --    build stopped before it ended
  --    job   not started
`},
		{"crashes", verdict{Outcome: outcomeFailing, Code: exit.Internal, Failure: podFailure{Pod: &crashing, Container: "pg", Code: exit.Internal, Exit: &plan.Exit{}, Why: "crashed 3 times"}}, []runPod{
			crashing, job,
		}, map[string][]string{"pg": {"FATAL: data directory has wrong ownership"}}, `podd: 2 pods, 1 failed, 12.4s: stopped, because db cannot succeed
  FAIL  db/pg crashed 3 times, last: exit 1 after 0.8s: "FATAL: data directory has wrong ownership"
  --    job   not started
`},
		{"timed out", verdict{Outcome: outcomeTimedOut, Code: exit.Timeout}, []runPod{
			withReportAt(build, 1, setRunning("main")), db, withReportAt(newPod(t, "slow", always, "c"), 1, addStep("c", plan.Failure{Count: 2, Message: "pulling x: no response"})),
			withReportAt(retried, 8, setExit("c", 2, 2, 0.1)), job,
		}, map[string][]string{"main": {"at 50 %"}, "c": {"no route"}}, `podd: 5 pods, 3 failed, 12.4s: timed out
  FAIL  build     still running after 12.4s: "at 50 %"
  ok    db        ready in 1.2s, stopped
  FAIL  slow      not ready after 12.4s: c: pulling x: no response
  FAIL  retried/c crashed 2 times within 12.4s, last: exit 2 after 0.1s: "no route"
  --    job       not started
`},
		{"interrupted", verdict{Outcome: outcomeInterrupted, Code: exit.Interrupted}, []runPod{
			withReportAt(build, 1, setRunning("main")), withReportAt(newPod(t, "slow", always, "c"), 1),
		}, nil, `podd: 2 pods, 0 failed, 12.4s: interrupted
  --    build stopped before it ended
  --    slow  stopped before it was ready
`},
		{"only long-running pods", verdict{Outcome: outcomeReady}, []runPod{db}, nil, `podd: 1 pod, 0 failed, 12.4s; warning: no pod ends by itself (restartPolicy Always), so the run ended when all pods were ready
  ok    db ready in 1.2s, stopped
`},
		{"sandbox that disappeared", verdict{Outcome: outcomeCompleted, Code: exit.Internal}, []runPod{
			withReportAt(build, 2, setFinished, func(r *state.Report) {
				r.Finished.Failed, r.Finished.Message = true, "the sandbox disappeared before container main exited"
			}),
		}, nil, `podd: 1 pod, 1 failed, 12.4s
  FAIL  build the sandbox disappeared before container main exited
`},
		{"control characters", verdict{Outcome: outcomeCompleted, Code: 1}, []runPod{
			withReportAt(job, 9, setExit("c", 1, 1, 1), setFinished),
		}, map[string][]string{"c": {"a", withoutControlChars("\x1b[31mred\r")}}, `podd: 1 pod, 1 failed, 12.4s
  FAIL  job/c exit 1 after 1.0s: "?[31mred?"
          | a
          | ?[31mred?
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newTestResultOf(test.verdict, 12.4, test.last, test.pods...)
			if diff := cmp.Diff(test.want, r.summary()); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}
