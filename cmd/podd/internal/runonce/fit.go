package runonce

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/admission"
	"podd/reconcile/plan"
)

// findMisfits returns an error Problem for each pod that the node would reject during the whole run.
// A long-running pod must fit in addition to all other long-running pods. A pod that runs to
// completion must fit in addition to all long-running pods, because it can wait for other pods that
// run to completion. order contains the keys of the pods in set.
func findMisfits(set *manifest.Set, order []types.NamespacedName, limits admission.Limits) []manifest.Problem {
	limits.DevicesUnknown = true // device plugins register only when the run has started
	limits.ReadWriteOncePod = refs.SinglePodClaims(set)
	var services, others []types.NamespacedName
	for _, key := range order {
		if manifest.RunsForever(&set.Pods[key].Object.Spec) {
			services = append(services, key)
		} else {
			others = append(others, key)
		}
	}
	f := fitter{set: set, limits: limits}
	var problems []manifest.Problem
	memory := f.admit(nil, services...)
	for _, key := range services {
		problems = f.addProblem(problems, key, memory[key].Order.Verdict)
	}
	for _, key := range others {
		problems = f.addProblem(problems, key, f.admit(memory, key)[key].Order.Verdict)
	}
	return problems
}

// A fitter decides which pods of set fit on a node that runs no other pods.
type fitter struct {
	set    *manifest.Set
	limits admission.Limits
}

// admit decides whether the pods with the given keys fit in addition to the pods in previous, which is
// the result of a previous call or nil. The result also contains the decisions in previous.
func (f *fitter) admit(previous map[types.NamespacedName]admission.Memory, keys ...types.NamespacedName) map[types.NamespacedName]admission.Memory {
	set := *f.set
	set.Pods = map[types.NamespacedName]*manifest.Pod{}
	var names []admission.NameFacts
	for key, memory := range previous {
		set.Pods[key] = f.set.Pods[key]
		names = append(names, admission.NameFacts{Key: key, Memory: memory})
	}
	for _, key := range keys {
		set.Pods[key] = f.set.Pods[key]
		names = append(names, admission.NameFacts{Key: key})
	}
	memories, _ := admission.Decide(admission.Input{Set: &set, HasSnapshot: true, AllWorkersReported: true, Limits: f.limits}, names, time.Time{})
	return memories
}

// addProblem adds a Problem to problems if v rejects the pod.
func (f *fitter) addProblem(problems []manifest.Problem, key types.NamespacedName, v plan.Verdict) []manifest.Problem {
	if v.Answer != plan.Reject {
		return problems
	}
	p := f.set.Pods[key]
	name := p.ManifestKey()
	return append(problems, manifest.Problem{
		Severity: manifest.Error, Path: p.Origin.Path, Position: p.Origin.Position("spec"), Pod: key,
		Message: "pod " + strings.TrimPrefix(name.String(), "default/") + " cannot run on this node: " + v.Message,
	})
}
