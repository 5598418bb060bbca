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

// isCritical reports whether p is critical. Other pods may be stopped to make room for a critical
// pod. A pod that is not preemptible is critical, even if its priority is low.
func isCritical(p *manifest.Pod) bool {
	return !p.Traits.IsPreemptible || p.Object.Spec.Priority != nil && *p.Object.Spec.Priority >= manifest.CriticalPriority
}

// isPreemptible reports whether c may be stopped to make room for the pod preemptor. As in a
// kubelet, only pods of a cluster are preemptible, because the cluster can run them on another
// node.
func isPreemptible(c *candidate, preemptor *manifest.Pod) bool {
	if !c.traits().IsPreemptible || c.Finished || c.WindingDown || !c.Active || c.Desired.UID == preemptor.UID {
		return false
	}
	if !isCritical(c.Desired) {
		return true
	}
	return preemptor.Object.Spec.Priority != nil && *preemptor.Object.Spec.Priority > *c.Desired.Object.Spec.Priority
}

// preempt returns the verdict for a critical pod if resources are insufficient. The verdict is
// Wait, with the next pod to stop as its victim. It is Reject if the preemptible pods together
// would not release enough resources.
func (a *admitter) preempt(c candidate) plan.Verdict {
	shortage := a.shortageAfterStops(c)
	if len(shortage) == 0 { // the pods that are being stopped release enough resources
		return waitForPreempted("other pods are being stopped so that this critical pod can run")
	}
	victim, ok := a.nextVictim(c.Desired, shortage)
	if !ok {
		var resources strings.Builder
		for _, name := range shortage.names() {
			fmt.Fprintf(&resources, "(res: %s, q: %d), ", name, shortage[name])
		}
		return rejectIfMessage("UnexpectedAdmissionError",
			"Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: ["+resources.String()+"]")
	}
	v := waitForPreempted("this pod preempts " + victim.Key.String())
	v.Victim, v.VictimResource = victim.Key, shortage.names()[0]
	return v
}

// names returns the names of the resources in the order in which a kubelet checks them.
func (a Amounts) names() []v1.ResourceName {
	return sortInKubeletOrder(slices.Collect(maps.Keys(a)))
}

// waitForPreempted returns the verdict for a pod that waits until preempted pods have stopped.
func waitForPreempted(message string) plan.Verdict {
	return plan.Verdict{Answer: plan.Wait, Reason: plan.ReasonPreempted, Message: message}
}

// shortageAfterStops returns the shortage for c that remains when all pods that are being stopped
// have stopped.
func (a *admitter) shortageAfterStops(c candidate) Amounts {
	return a.shortage(c, a.pods.stoppingCount, a.requests.releasing)
}

// shortage returns the amount by which each resource is insufficient for c if some other pods stop.
// pods is the number of these pods, and amounts is the sum of the amounts that they release. The
// result omits a resource if c already has the amount that it requests.
func (a *admitter) shortage(c candidate, pods int, amounts Amounts) Amounts {
	shortage, limits := Amounts{}, a.requests.limits
	if n := a.pods.count - pods + 1 - a.pods.max; !c.Active && a.pods.hasMax && n > 0 {
		shortage[v1.ResourcePods] = int64(n)
	}
	ownAmounts := c.heldAmounts(limits)
	for name, requested := range requestsOf(c.Desired, limits) {
		usedByOthers := a.requests.requested[name] - ownAmounts[name] - amounts[name]
		if n := usedByOthers + requested - limits[name]; n > 0 && requested > ownAmounts[name] {
			shortage[name] = n
		}
	}
	return shortage
}

// shortageWithout returns the part of shortage that remains when the given pods have stopped.
func (a *admitter) shortageWithout(shortage Amounts, stopped []candidate) Amounts {
	newShortage := maps.Clone(shortage)
	for i := range stopped {
		for name := range newShortage {
			newShortage[name] -= a.released(&stopped[i], name)
		}
	}
	maps.DeleteFunc(newShortage, func(_ v1.ResourceName, n int64) bool { return n <= 0 })
	return newShortage
}

// released returns the amount of a resource that c releases when it stops.
func (a *admitter) released(c *candidate, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return c.heldAmounts(a.requests.limits)[name]
}

// nextVictim returns the pod to stop next, so that preemptor can run. The pod is one of a set of
// pods that together release enough resources. As in a kubelet, the set contains few pods, and
// above all few pods of higher QoS classes. ok is false if there is no such set.
func (a *admitter) nextVictim(preemptor *manifest.Pod, shortage Amounts) (victim candidate, ok bool) {
	classes := map[v1.PodQOSClass][]candidate{}
	for i := range a.candidates {
		if c := &a.candidates[i]; isPreemptible(c, preemptor) {
			class := manifest.QoS(c.Desired.Object)
			classes[class] = append(classes[class], *c)
		}
	}
	bestEffort, burstable, guaranteed := classes[v1.PodQOSBestEffort], classes[v1.PodQOSBurstable], classes[v1.PodQOSGuaranteed]
	if len(a.shortageWithout(shortage, slices.Concat(bestEffort, burstable, guaranteed))) > 0 {
		return candidate{}, false
	}
	guaranteed = a.fewestVictims(guaranteed, a.shortageWithout(shortage, slices.Concat(bestEffort, burstable)))
	burstable = a.fewestVictims(burstable, a.shortageWithout(shortage, slices.Concat(bestEffort, guaranteed)))
	bestEffort = a.fewestVictims(bestEffort, a.shortageWithout(shortage, slices.Concat(burstable, guaranteed)))
	preemptible := slices.Concat(guaranteed, burstable, bestEffort)
	if len(preemptible) == 0 {
		return candidate{}, false
	}
	return preemptible[0], true
}

// fewestVictims returns a subset of the candidates that together release enough resources for
// shortage. It chooses one candidate after the other: each time the candidate with the smallest
// remainingShortage, and among equal candidates the one with the smallest requests (isSmaller). The
// caller must ensure that all candidates together release enough.
func (a *admitter) fewestVictims(candidates []candidate, shortage Amounts) (victims []candidate) {
	for candidates = slices.Clone(candidates); len(shortage) > 0; {
		bestIndex := 0
		for i := range candidates {
			if d := cmp.Compare(a.remainingShortage(&candidates[i], shortage), a.remainingShortage(&candidates[bestIndex], shortage)); d < 0 || d == 0 && a.isSmaller(&candidates[i], &candidates[bestIndex]) {
				bestIndex = i
			}
		}
		victims = append(victims, candidates[bestIndex])
		shortage = a.shortageWithout(shortage, candidates[bestIndex:bestIndex+1])
		candidates = slices.Delete(candidates, bestIndex, bestIndex+1)
	}
	return victims
}

// remainingShortage returns a measure of the shortage that remains after c has stopped. As in a
// kubelet, it is a sum over all resources. The term for a resource is the fraction of its shortage
// that remains, squared.
func (a *admitter) remainingShortage(c *candidate, shortage Amounts) (sum float64) {
	for name, n := range shortage {
		if remaining := n - a.released(c, name); remaining > 0 {
			sum += math.Pow(float64(remaining)/float64(n), 2)
		}
	}
	return sum
}

// isSmaller reports whether c requests less memory than other. If both request the same amount of
// memory, isSmaller compares their cpu requests.
func (a *admitter) isSmaller(c, other *candidate) bool {
	for _, name := range []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU} {
		if d := cmp.Compare(a.released(c, name), a.released(other, name)); d != 0 {
			return d < 0
		}
	}
	return false
}
