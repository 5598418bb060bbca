package runonce

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/runtime"
)

// at is when the runs of the tests begin.
var at = time.Date(2026, 3, 1, 14, 2, 0, 0, time.UTC)

func after(seconds float64) time.Time {
	return at.Add(time.Duration(seconds * float64(time.Second)))
}

// manifestOf is a pod with containers of these names; "init:x" and "sidecar:x"
// are init containers.
func manifestOf(name string, policy v1.RestartPolicy, containers ...string) string {
	var inits, regular strings.Builder
	for _, c := range containers {
		kind, rest, ok := strings.Cut(c, ":")
		switch {
		case !ok:
			fmt.Fprintf(&regular, "  - name: %s\n    image: img\n    resources:\n      limits:\n        memory: 256Mi\n", c)
		case kind == "sidecar":
			fmt.Fprintf(&inits, "  - {name: %s, image: img, restartPolicy: Always}\n", rest)
		default:
			fmt.Fprintf(&inits, "  - {name: %s, image: img}\n", rest)
		}
	}
	text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  restartPolicy: %s\n", name, policy)
	if inits.Len() > 0 {
		text += "  initContainers:\n" + inits.String()
	}
	return text + "  containers:\n" + regular.String()
}

// wanted decodes manifests as a run does.
func wanted(t testing.TB, texts ...string) []*manifest.Pod {
	t.Helper()
	f := decode.File([]byte(strings.Join(texts, "---\n")), decode.Options{Path: "ci/test.yaml", Node: "n1", Suffix: "run1"})
	if f.Refused() {
		t.Fatalf("refused: %v", f.Problems)
	}
	return f.Pods
}

// podOf is a pod that nothing was heard of.
func podOf(t testing.TB, name string, policy v1.RestartPolicy, containers ...string) Pod {
	t.Helper()
	return Pod{Desired: wanted(t, manifestOf(name, policy, containers...))[0], Name: name}
}

// byRule has the first container of p restart after such exits alone.
func byRule(p Pod, op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) {
	c := &p.Desired.Spec.Spec.Containers[0]
	c.RestartPolicy = new(v1.ContainerRestartPolicyNever)
	c.RestartPolicyRules = []v1.ContainerRestartRule{{
		Action: v1.ContainerRestartRuleActionRestart, ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes},
	}}
}

// report is what a worker says of p; change makes it say more.
func report(p Pod, change ...func(*reconcile.Report)) *reconcile.Report {
	spec := *p.Desired.Spec
	r := &reconcile.Report{
		Key: p.Desired.Key, Version: p.Desired, Pod: &spec, Exists: true,
		Decision: plan.Decision{Phase: plan.PhaseRun, Rule: plan.RuleRun}, Since: at, Last: map[string]plan.Exit{},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func heard(p Pod, seconds float64, change ...func(*reconcile.Report)) Pod {
	return p.WithReport(report(p, change...), after(seconds))
}

func isReady(r *reconcile.Report) {
	r.Pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
}

func isRunning(container string) func(*reconcile.Report) {
	return func(r *reconcile.Report) {
		r.Pod.Status.ContainerStatuses = append(r.Pod.Status.ContainerStatuses, v1.ContainerStatus{
			Name: container, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
		})
	}
}

// exited says that a container ended after seconds, at its n-th run.
func exited(container string, code int32, n uint32, seconds float64) func(*reconcile.Report) {
	return func(r *reconcile.Report) {
		reason := "Error"
		if code == 0 {
			reason = "Completed"
		}
		r.Last[container] = plan.Exit{
			ID: container, Code: code, Reason: reason, StartedAt: at, FinishedAt: after(seconds), Attempt: n - 1,
		}
	}
}

func exitReason(container, reason, message string) func(*reconcile.Report) {
	return func(r *reconcile.Report) {
		e := r.Last[container]
		e.Reason, e.Message = reason, message
		r.Last[container] = e
	}
}

// saying is a termination message.
func saying(container, message string) func(*reconcile.Report) {
	return func(r *reconcile.Report) {
		e := r.Last[container]
		e.TerminationMessage, e.MessageRead = message, true
		r.Last[container] = e
	}
}

// isFinished is the end that the exits so far come to.
func isFinished(r *reconcile.Report) {
	f := &plan.Finished{UID: r.Version.UID, Hash: r.Version.Hash}
	for _, e := range r.Last {
		f.Failed = f.Failed || e.Code != 0
	}
	r.Finished, r.Decision.Rule, r.Decision.Phase = f, plan.RuleFinished, plan.PhaseWindDown
}

func isEvicted(r *reconcile.Report) {
	isFinished(r)
	r.Finished.Failed, r.Finished.Reason, r.Finished.Message = true, plan.Evicted, "Pod holds too much"
}

func step(container string, f plan.Failure) func(*reconcile.Report) {
	return func(r *reconcile.Report) {
		r.Decision.Steps = append(r.Decision.Steps, plan.Step{
			Container: container, Rule: "step", Reason: f.Reason, Why: f.Message, Problem: true, Failure: f,
		})
	}
}

func waitsFor(rule plan.RuleID, why string, since float64) func(*reconcile.Report) {
	return func(r *reconcile.Report) {
		r.Decision.Phase, r.Decision.Rule, r.Decision.Why, r.Decision.Problem = plan.PhaseWait, rule, why, true
		r.Since = after(since)
	}
}

func isFinal(r *reconcile.Report) { r.Decision.Failure.Final = true }

// observed lists containers of the pod's sandbox.
func observed(ready bool, containers ...runtime.Container) func(*reconcile.Report) {
	return func(r *reconcile.Report) {
		r.Observed = []runtime.Incarnation{{
			Sandbox: runtime.Sandbox{ID: "s", UID: types.UID("u"), Ready: ready}, Containers: containers,
		}}
	}
}
