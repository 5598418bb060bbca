package admission

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
)

// criticalPriority is the lowest priority of a critical pod.
const criticalPriority = 2_000_000_000

// isCritical reports whether other pods can be stopped for p. A pod that is not preemptible
// is critical, whatever its priority.
func isCritical(p *manifest.Pod) bool {
	return !p.Traits.Preemptible || p.Spec.Spec.Priority != nil && *p.Spec.Spec.Priority >= criticalPriority
}

// isPreemptible reports whether c may be stopped for the pod to. As in a kubelet, that is
// only a pod of a cluster, which can run it on another node.
func isPreemptible(c *candidate, to *manifest.Pod) bool {
	if !c.traits().Preemptible || c.Finished || c.WindingDown || !c.Active || c.Desired.UID == to.UID {
		return false
	}
	if !isCritical(c.Desired) {
		return true
	}
	return to.Spec.Spec.Priority != nil && *to.Spec.Spec.Priority > *c.Desired.Spec.Spec.Priority
}

// preempt makes a critical pod wait while the next pod is stopped for it. It rejects the
// critical pod if stopping all possible pods would not make enough room.
func (a *admitter) preempt(c candidate) plan.Verdict {
	insufficient := a.insufficientAfterStops(c)
	if len(insufficient) == 0 { // the pods that are being stopped are sufficient
		return waitForPreempted("the pods that it preempts are being stopped")
	}
	next, ok := a.nextVictim(c.Desired, insufficient)
	if !ok {
		var resources strings.Builder
		for _, name := range inKubeletOrder(slices.Collect(maps.Keys(insufficient))) {
			fmt.Fprintf(&resources, "(res: %s, q: %d), ", name, insufficient[name])
		}
		return rejectIf("UnexpectedAdmissionError",
			"Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: ["+resources.String()+"]")
	}
	v := waitForPreempted("it preempts " + next.Key.String())
	v.Victim = next.Key
	return v
}

func waitForPreempted(message string) plan.Verdict {
	return plan.Verdict{Answer: plan.Wait, Reason: plan.Preempted, Message: message}
}

// insufficientAfterStops returns by how much resources are insufficient for a pod after all pods
// that are being stopped have exited.
func (a *admitter) insufficientAfterStops(c candidate) Amounts {
	return a.insufficient(c, a.pods.leaving, a.requests.leaving)
}

// insufficient returns by how much each resource is insufficient for a pod if the other pods
// release the places of that many pods and these amounts. A resource of which the pod requests no
// more than it already has is sufficient.
func (a *admitter) insufficient(c candidate, pods int, amounts Amounts) Amounts {
	insufficient, limits := Amounts{}, a.requests.limits
	if n := a.pods.taken - pods + 1 - a.pods.max; !c.Active && a.pods.max > 0 && n > 0 {
		insufficient[v1.ResourcePods] = int64(n)
	}
	held := c.held(limits)
	for name, requested := range requestsOf(c.Desired, limits) {
		others := a.requests.taken[name] - held[name] - amounts[name]
		if n := others + requested - limits[name]; n > 0 && requested > held[name] {
			insufficient[name] = n
		}
	}
	return insufficient
}

// insufficientWithout returns by how much resources are still insufficient after the other pods
// were stopped.
func (a *admitter) insufficientWithout(insufficient Amounts, others []candidate) Amounts {
	left := maps.Clone(insufficient)
	for i := range others {
		for name := range left {
			left[name] -= a.released(&others[i], name)
		}
	}
	maps.DeleteFunc(left, func(_ v1.ResourceName, n int64) bool { return n <= 0 })
	return left
}

func (a *admitter) released(c *candidate, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return c.held(a.requests.limits)[name]
}

// nextVictim returns the pod to stop next: from the fewest pods that make enough room, of the
// lowest QoS class if there is a choice, and small ones before large ones.
func (a *admitter) nextVictim(to *manifest.Pod, insufficient Amounts) (candidate, bool) {
	classes := map[v1.PodQOSClass][]candidate{}
	for i := range a.all {
		if c := &a.all[i]; isPreemptible(c, to) {
			class := manifest.QoS(c.Desired.Spec)
			classes[class] = append(classes[class], *c)
		}
	}
	best, burst, sure := classes[v1.PodQOSBestEffort], classes[v1.PodQOSBurstable], classes[v1.PodQOSGuaranteed]
	if len(a.insufficientWithout(insufficient, slices.Concat(best, burst, sure))) > 0 {
		return candidate{}, false
	}
	sure = a.fewestVictims(sure, a.insufficientWithout(insufficient, slices.Concat(best, burst)))
	burst = a.fewestVictims(burst, a.insufficientWithout(insufficient, slices.Concat(best, sure)))
	best = a.fewestVictims(best, a.insufficientWithout(insufficient, slices.Concat(burst, sure)))
	all := slices.Concat(sure, burst, best)
	return all[0], len(all) > 0
}

// fewestVictims repeatedly chooses the pod after which the least is lacking.
func (a *admitter) fewestVictims(from []candidate, insufficient Amounts) (chosen []candidate) {
	for from = slices.Clone(from); len(insufficient) > 0; {
		at := 0
		for i := range from {
			if d := cmp.Compare(a.distance(&from[i], insufficient), a.distance(&from[at], insufficient)); d < 0 || d == 0 && a.isSmaller(&from[i], &from[at]) {
				at = i
			}
		}
		chosen = append(chosen, from[at])
		insufficient = a.insufficientWithout(insufficient, from[at:at+1])
		from = slices.Delete(from, at, at+1)
	}
	return chosen
}

// distance returns how much would still be lacking without c. All resources have the same
// weight.
func (a *admitter) distance(c *candidate, insufficient Amounts) (d float64) {
	for name, n := range insufficient {
		if left := n - a.released(c, name); left > 0 {
			d += math.Pow(float64(left)/float64(n), 2)
		}
	}
	return d
}

func (a *admitter) isSmaller(c, than *candidate) bool {
	for _, name := range []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU} {
		if d := cmp.Compare(a.released(c, name), a.released(than, name)); d != 0 {
			return d < 0
		}
	}
	return false
}
