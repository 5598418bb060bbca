package runonce

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/cmd/podd/internal/exit"
	"podd/reconcile"
	"podd/reconcile/plan"
)

// result is what a run of pods came to after seconds.
func resultOf(v Verdict, seconds float64, last map[string][]string, pods ...Pod) Result {
	s := rowBuilder{verdict: v, began: at, now: after(seconds), last: func(_ *Pod, c string) []string { return last[c] }}
	r := newResult(v, s.rows(pods), len(pods), at, after(seconds))
	for _, p := range pods {
		r.Several = r.Several || len(pods) > 1 || len(p.containers()) > 1
	}
	return r
}

// TestSummary: what a run says at its end, in the words of its users.
func TestSummary(t *testing.T) {
	build, db := podOf(t, "build", never, "main"), podOf(t, "db", always, "pg")
	job, again := podOf(t, "job", never, "init:setup", "c"), podOf(t, "again", onFailure, "c")
	db = heard(db, 1.2, isReady)
	oom := podOf(t, "test", never, "unit")
	oom = heard(oom, 12, exited("unit", 137, 1, 3), exitReason("unit", "OOMKilled", ""), isFinished)
	troubled := heard(podOf(t, "web", never, "c"), 1, step("c", plan.Failure{Count: 1, Status: 404, Reason: "ErrImagePull", Message: "pulling r.example/web:2 for default/web-run1: 404 from r.example: no such image"}))
	crashing := heard(podOf(t, "db", always, "pg"), 4, exited("pg", 1, 3, 0.8))
	tests := []struct {
		name    string
		verdict Verdict
		pods    []Pod
		last    map[string][]string
		want    string
	}{
		{"the example", Verdict{Outcome: Ended, Code: 137}, []Pod{
			heard(build, 9, exited("main", 0, 1, 8.1), isFinished), db, oom,
		}, nil, `podd: 3 pods, 1 failed, 12.4s
  ok    build     exit 0 in 8.1s
  ok    db        ready in 1.2s, stopped
  FAIL  test/unit OOMKilled (137) after 3.0s: limit 256Mi, ci/test.yaml:10
`},
		{"one pod", Verdict{Outcome: Ended, Code: 3}, []Pod{
			heard(build, 9, exited("main", 3, 1, 0.84), isFinished),
		}, map[string][]string{"main": {"one", "two \"2\""}}, `podd: 1 pod, 1 failed, 12.4s
  FAIL  build/main exit 3 after 0.8s: "two \"2\""
`},
		{"too long by its own deadline", Verdict{Outcome: Ended, Code: 124}, []Pod{
			heard(build, 9, exited("main", 143, 1, 8), func(r *reconcile.Report) {
				r.Finished = &plan.Finished{Failed: true, Reason: plan.DeadlineExceeded, Message: "Pod was active"}
			}),
		}, nil, `podd: 1 pod, 1 failed, 12.4s
  FAIL  build DeadlineExceeded: Pod was active
`},
		{"evicted", Verdict{Outcome: Ended, Code: exit.Internal}, []Pod{
			heard(build, 9, exited("main", 137, 1, 8), isEvicted), heard(job, 9, isEvicted),
		}, map[string][]string{"main": {"one"}}, `podd: 2 pods, 2 failed, 12.4s
  FAIL  build Evicted: Pod holds too much
  FAIL  job   Evicted: Pod holds too much
`},
		{"a termination message", Verdict{Outcome: Ended, Code: 3}, []Pod{
			heard(build, 9, exited("main", 3, 1, 0.84), saying("main", "\n\x1bno disk\nmore\n"), isFinished),
		}, map[string][]string{"main": {"one"}}, `podd: 1 pod, 1 failed, 12.4s
  FAIL  build/main exit 3 after 0.8s: "no disk"
`},
		{"several with their last lines", Verdict{Outcome: Ended, Code: 143}, []Pod{
			heard(job, 9, exited("setup", 143, 1, 90), isFinished),
		}, map[string][]string{"setup": {"1", "2", "3", "4", "5", "6"}}, `podd: 1 pod, 1 failed, 12.4s
  FAIL  job/setup SIGTERM (143) after 1m30s: "6"
          | 2
          | 3
          | 4
          | 5
          | 6
`},
		{"no command", Verdict{Outcome: Ended, Code: 128}, []Pod{
			heard(build, 9, exited("main", 128, 1, 0), exitReason("main", "StartError",
				"failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: \"x\": executable file not found in $PATH: unknown"), isFinished),
		}, nil, `podd: 1 pod, 1 failed, 12.4s
  FAIL  build/main did not start: exec: "x": executable file not found in $PATH
`},
		{"on another attempt", Verdict{Outcome: Ended}, []Pod{
			heard(again, 9, exited("c", 0, 3, 2), isFinished), heard(db, 5, isReady, exited("pg", 1, 1, 1)),
		}, nil, `podd: 2 pods, 0 failed, 12.4s
  ok    again exit 0 in 2.0s, on attempt 3
  ok    db    ready in 1.2s, restarted once, stopped
`},
		{"no image", Verdict{Outcome: Failing, Code: exit.Internal, Failure: PodFailure{Pod: &troubled, Container: "c", Code: exit.Internal, Why: troubled.Report.Decision.Steps[0].Failure.Message}}, []Pod{
			troubled, heard(build, 1), job,
		}, nil, `podd: 3 pods, 1 failed, 12.4s: ended, since web cannot come right
  FAIL  web/c pulling r.example/web:2 for default/web: 404 from r.example: no such image
  --    build stopped before it ended
  --    job   not started
`},
		{"crashes", Verdict{Outcome: Failing, Code: exit.Internal, Failure: PodFailure{Pod: &crashing, Container: "pg", Code: exit.Internal, Exit: &plan.Exit{}, Why: "crashed 3 times"}}, []Pod{
			crashing, job,
		}, map[string][]string{"pg": {"FATAL: data directory has wrong ownership"}}, `podd: 2 pods, 1 failed, 12.4s: ended, since db cannot come right
  FAIL  db/pg crashed 3 times, last: exit 1 after 0.8s: "FATAL: data directory has wrong ownership"
  --    job   not started
`},
		{"timed out", Verdict{Outcome: TimedOut, Code: exit.Timeout}, []Pod{
			heard(build, 1, isRunning("main")), db, heard(podOf(t, "slow", always, "c"), 1, step("c", plan.Failure{Count: 2, Message: "pulling x: no answer"})),
			heard(again, 8, exited("c", 2, 2, 0.1)), job,
		}, map[string][]string{"main": {"at 50 %"}, "c": {"no route"}}, `podd: 5 pods, 3 failed, 12.4s: timed out
  FAIL  build   still ran after 12.4s: "at 50 %"
  ok    db      ready in 1.2s, stopped
  FAIL  slow    not ready after 12.4s: c: pulling x: no answer
  FAIL  again/c crashed 2 times within 12.4s, last: exit 2 after 0.1s: "no route"
  --    job     not started
`},
		{"interrupted", Verdict{Outcome: Interrupted, Code: exit.Interrupted}, []Pod{
			heard(build, 1, isRunning("main")), heard(podOf(t, "slow", always, "c"), 1),
		}, nil, `podd: 2 pods, 0 failed, 12.4s: interrupted
  --    build stopped before it ended
  --    slow  stopped before it was ready
`},
		{"only such that go on", Verdict{Outcome: Ready}, []Pod{db}, nil, `podd: 1 pod, 0 failed, 12.4s; warning: no pod ends by itself (restartPolicy Always), so being ready ended the run
  ok    db ready in 1.2s, stopped
`},
		{"lost", Verdict{Outcome: Ended, Code: exit.Internal}, []Pod{
			heard(build, 2, isFinished, func(r *reconcile.Report) {
				r.Finished.Failed, r.Finished.Message = true, "the sandbox was lost before container main exited"
			}),
		}, nil, `podd: 1 pod, 1 failed, 12.4s
  FAIL  build the sandbox was lost before container main exited
`},
		{"what a terminal would act upon", Verdict{Outcome: Ended, Code: 1}, []Pod{
			heard(job, 9, exited("c", 1, 1, 1), isFinished),
		}, map[string][]string{"c": {"a", plain("\x1b[31mred\r")}}, `podd: 1 pod, 1 failed, 12.4s
  FAIL  job/c exit 1 after 1.0s: "?[31mred?"
          | a
          | ?[31mred?
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := resultOf(test.verdict, 12.4, test.last, test.pods...)
			if diff := cmp.Diff(test.want, r.Summary()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
