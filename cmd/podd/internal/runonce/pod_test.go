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
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
)

// start is the start time of the runs in tests.
var start = time.Date(2026, 3, 1, 14, 2, 0, 0, time.UTC)

// after returns the time that is the given number of seconds after start.
func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// podManifest returns the manifest of a pod with containers. A name "init:x" means the init container
// x, and "sidecar:x" the sidecar x.
func podManifest(name string, policy v1.RestartPolicy, containers ...string) string {
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

// decodePods decodes the manifests in texts as a run does.
func decodePods(t testing.TB, texts ...string) []*manifest.Pod {
	t.Helper()
	f := decode.File([]byte(strings.Join(texts, "---\n")), decode.Options{Path: "ci/test.yaml", NodeName: "n1", NameSuffix: "run1"})
	if f.HasRefusedDocument() {
		t.Fatalf("decoding manifests: %v", f.Problems)
	}
	return f.Pods
}

// newPod returns a pod without a report.
func newPod(t testing.TB, name string, policy v1.RestartPolicy, containers ...string) runPod {
	t.Helper()
	return runPod{Desired: decodePods(t, podManifest(name, policy, containers...))[0], Name: name}
}

// setRestartRule lets the first container of p restart only after exits whose code op and codes match.
func setRestartRule(p runPod, op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) {
	c := &p.Desired.Object.Spec.Containers[0]
	c.RestartPolicy = new(v1.ContainerRestartPolicyNever)
	c.RestartPolicyRules = []v1.ContainerRestartRule{{
		Action: v1.ContainerRestartRuleActionRestart, ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes},
	}}
}

// newReport returns a report of a worker that runs p, after applying changes to it.
func newReport(p runPod, change ...func(*state.Report)) *state.Report {
	spec := *p.Desired.Object
	r := &state.Report{
		Key: p.Desired.Key, Version: p.Desired, Pod: &spec, ExistsOnNode: true,
		Decision: plan.Decision{Phase: plan.PhaseRun, Rule: plan.RuleRun}, DecisionSince: start, LastExits: map[string]plan.Exit{},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

// withReportAt returns p with a new report (see newReport), received at after(seconds).
func withReportAt(p runPod, seconds float64, change ...func(*state.Report)) runPod {
	return p.withReport(newReport(p, change...), after(seconds))
}

// setReady makes the pod ready.
func setReady(r *state.Report) {
	r.Pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
}

func setRunning(container string) func(*state.Report) {
	return func(r *state.Report) {
		r.Pod.Status.ContainerStatuses = append(r.Pod.Status.ContainerStatuses, v1.ContainerStatus{
			Name: container, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
		})
	}
}

// setExit sets the last exit of a container, which has started n times. Its last start was at start, and
// its exit at after(seconds).
func setExit(container string, code int32, n uint32, seconds float64) func(*state.Report) {
	return func(r *state.Report) {
		reason := "Error"
		if code == 0 {
			reason = "Completed"
		}
		r.LastExits[container] = plan.Exit{
			ID: container, Code: code, Reason: reason, StartedAt: start, FinishedAt: after(seconds), Attempt: n - 1,
		}
	}
}

func setExitReason(container, reason, message string) func(*state.Report) {
	return func(r *state.Report) {
		e := r.LastExits[container]
		e.Reason, e.Message = reason, message
		r.LastExits[container] = e
	}
}

// setMessage sets the termination message of a container's last exit.
func setMessage(container, message string) func(*state.Report) {
	return func(r *state.Report) {
		e := r.LastExits[container]
		e.TerminationMessage, e.MessageRead = message, true
		r.LastExits[container] = e
	}
}

// setFinished finishes the pod. The pod has failed if one of the last exits has a code other than 0.
func setFinished(r *state.Report) {
	f := &plan.PodEnd{UID: r.Version.UID, Hash: r.Version.Hash}
	for _, e := range r.LastExits {
		f.Failed = f.Failed || e.Code != 0
	}
	r.Finished, r.Decision.Rule, r.Decision.Phase = f, plan.RuleFinished, plan.PhaseWindDown
}

func setEvicted(r *state.Report) {
	setFinished(r)
	r.Finished.Failed, r.Finished.Reason, r.Finished.Message = true, plan.ReasonEvicted, "Pod exceeds its limit"
}

// addStep adds the failure f of a container to the decision.
func addStep(container string, f plan.Failure) func(*state.Report) {
	return func(r *state.Report) {
		r.Decision.Steps = append(r.Decision.Steps, plan.Step{
			Container: container, Rule: "step", Reason: f.Reason, Why: f.Message, NeedsUser: true, Failure: f,
		})
	}
}

// setWaiting makes the pod wait. The parameter rule is the rule that requires the wait, why is the reason
// that users see, and after(since) is the beginning of the wait.
func setWaiting(rule plan.RuleID, why string, since float64) func(*state.Report) {
	return func(r *state.Report) {
		r.Decision.Phase, r.Decision.Rule, r.Decision.Why, r.Decision.NeedsUser = plan.PhaseWait, rule, why, true
		r.DecisionSince = after(since)
	}
}

// setFinal makes the failure of the pod final, so that podd does not try again.
func setFinal(r *state.Report) { r.Decision.Failure.IsFinal = true }

// setBlocked makes reservations of other pods the reason of the wait.
func setBlocked(r *state.Report) { r.Decision.BlockedByPods = true }

// setCleanedUp sets the phase of a finished pod whose cleanup is complete.
func setCleanedUp(r *state.Report) { r.Decision.Phase = plan.PhaseCleanedUp }

// setSince sets the time since which the decision has not changed.
func setSince(seconds float64) func(*state.Report) {
	return func(r *state.Report) { r.DecisionSince = after(seconds) }
}

// setObserved sets the observed sandbox of the pod, which may be ready, and its containers.
func setObserved(ready bool, containers ...runtime.Container) func(*state.Report) {
	return func(r *state.Report) {
		r.Observed = []runtime.Incarnation{{
			Sandbox: runtime.Sandbox{ID: "s", UID: types.UID("u"), Ready: ready}, Containers: containers,
		}}
	}
}
