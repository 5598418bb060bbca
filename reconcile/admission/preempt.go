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

// critical reports whether other pods can be stopped for p. A pod of a file or URL is
// critical, whatever its priority.
func critical(p *manifest.Pod) bool {
	return !ofCluster(p) || p.Spec.Spec.Priority != nil && *p.Spec.Spec.Priority >= criticalPriority
}

// isPreemptible reports whether a pod may be stopped for another. As in a kubelet, that is only
// a pod of a cluster, which can run it on another node.
func isPreemptible(c *Claimant, to *manifest.Pod) bool {
	if !ofCluster(c.Wants) || c.Rests || c.Ends || !c.Present || c.Wants.UID == to.UID {
		return false
	}
	if !critical(c.Wants) {
		return true
	}
	return to.Spec.Spec.Priority != nil && *to.Spec.Spec.Priority > *c.Wants.Spec.Spec.Priority
}

// preempt makes a critical pod wait while the next pod is stopped for it. It rejects the
// critical pod if stopping all possible pods would not make enough room.
func (a *admissions) preempt(c Claimant) plan.Verdict {
	short := a.shortOf(c)
	if len(short) == 0 { // the pods that are being stopped are sufficient
		return waitForPreempted("the pods that it preempts are being stopped")
	}
	next, ok := a.nextToPreempt(c.Wants, short)
	if !ok {
		var lacks strings.Builder
		for _, name := range inKubeletOrder(slices.Collect(maps.Keys(short))) {
			fmt.Fprintf(&lacks, "(res: %s, q: %d), ", name, short[name])
		}
		return clusterVerdict("UnexpectedAdmissionError",
			"Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: ["+lacks.String()+"]")
	}
	v := waitForPreempted("it preempts " + next.Key.String())
	v.Preempts = next.Key
	return v
}

func waitForPreempted(message string) plan.Verdict {
	return plan.Verdict{Answer: plan.Wait, Reason: plan.Preempted, Message: message}
}

// shortOf returns what a pod lacks after all pods being stopped have exited.
func (a *admissions) shortOf(c Claimant) Amounts {
	return a.lacks(c, a.places.leaving, a.shares.leaving)
}

// lacks returns what a pod would lack if these parts of the others' amounts were free. A
// resource is not lacking if the pod requests no more of it than it already has.
func (a *admissions) lacks(c Claimant, places int, amounts Amounts) Amounts {
	short, limits := Amounts{}, a.shares.limits
	if n := a.places.taken - places + 1 - a.places.max; !c.Present && a.places.max > 0 && n > 0 {
		short[v1.ResourcePods] = int64(n)
	}
	held := c.held(limits)
	for name, asks := range needOf(c.Wants, limits) {
		others := a.shares.taken[name] - held[name] - amounts[name]
		if n := others + asks - limits[name]; n > 0 && asks > held[name] {
			short[name] = n
		}
	}
	return short
}

// without returns what is still lacking without the others.
func (a *admissions) without(short Amounts, others []Claimant) Amounts {
	left := maps.Clone(short)
	for i := range others {
		for name := range left {
			left[name] -= a.frees(&others[i], name)
		}
	}
	maps.DeleteFunc(left, func(_ v1.ResourceName, n int64) bool { return n <= 0 })
	return left
}

func (a *admissions) frees(c *Claimant, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return c.held(a.shares.limits)[name]
}

// giveWay returns the pod to stop next: from the fewest pods that make enough room, of the
// lowest QoS class if there is a choice, and small ones before large ones.
func (a *admissions) nextToPreempt(to *manifest.Pod, short Amounts) (Claimant, bool) {
	classes := map[v1.PodQOSClass][]Claimant{}
	for i := range a.all {
		if c := &a.all[i]; isPreemptible(c, to) {
			class := manifest.QoS(c.Wants.Spec)
			classes[class] = append(classes[class], *c)
		}
	}
	best, burst, sure := classes[v1.PodQOSBestEffort], classes[v1.PodQOSBurstable], classes[v1.PodQOSGuaranteed]
	if len(a.without(short, slices.Concat(best, burst, sure))) > 0 {
		return Claimant{}, false
	}
	sure = a.fewest(sure, a.without(short, slices.Concat(best, burst)))
	burst = a.fewest(burst, a.without(short, slices.Concat(best, sure)))
	best = a.fewest(best, a.without(short, slices.Concat(burst, sure)))
	all := slices.Concat(sure, burst, best)
	return all[0], len(all) > 0
}

// fewest repeatedly chooses the pod after which the least is lacking.
func (a *admissions) fewest(from []Claimant, short Amounts) (chosen []Claimant) {
	for from = slices.Clone(from); len(short) > 0; {
		at := 0
		for i := range from {
			if d := cmp.Compare(a.distance(&from[i], short), a.distance(&from[at], short)); d < 0 || d == 0 && a.smaller(&from[i], &from[at]) {
				at = i
			}
		}
		chosen = append(chosen, from[at])
		short = a.without(short, from[at:at+1])
		from = slices.Delete(from, at, at+1)
	}
	return chosen
}

// distance returns how much would still be lacking without c. All resources have the same
// weight.
func (a *admissions) distance(c *Claimant, short Amounts) (d float64) {
	for name, n := range short {
		if left := n - a.frees(c, name); left > 0 {
			d += math.Pow(float64(left)/float64(n), 2)
		}
	}
	return d
}

func (a *admissions) smaller(c, than *Claimant) bool {
	for _, name := range []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU} {
		if d := cmp.Compare(a.frees(c, name), a.frees(than, name)); d != 0 {
			return d < 0
		}
	}
	return false
}
