package admission

import (
	"slices"

	"podd/manifest"
	"podd/reconcile/plan"
)

// preemptForStatic returns the verdict for a pod of a file or URL for which there is not enough
// room. Pods that a cluster has bound to this node are stopped for it, as in a kubelet.
// Pods that the cluster has not confirmed yet do not block it, because it may be what runs
// the API server. Meanwhile an earlier version of it retained running.
func (a *admitter) preemptForStatic(c candidate, why plan.Verdict) plan.Verdict {
	if v := a.limits.admitDevices(c); v.Answer != plan.Admit {
		return v // preemption would not help
	}
	if v := a.admitExclusive(c); v.Answer == plan.Reject {
		return v
	}
	pods, amounts := 0, Amounts{}
	for i := range a.all {
		if o := &a.all[i]; o.Unconfirmed {
			amounts.add(o.held(a.requests.limits))
			if o.Active {
				pods++
			}
		}
	}
	if len(a.insufficient(c, pods, amounts)) == 0 {
		if v := a.admitExclusive(c); v.Answer != plan.Admit {
			return v
		}
		if !c.Active {
			a.pods.taken++
		}
		a.requests.take(c)
		return plan.Verdict{}
	}
	amounts.add(a.requests.leaving)
	insufficient := a.insufficient(c, pods+a.pods.leaving, amounts)
	v := waitForPreempted("the pods that it preempts are being stopped")
	if len(insufficient) > 0 {
		next, ok := a.nextVictim(c.Desired, insufficient)
		if !ok {
			return why
		}
		v.Victim, v.Message = next.Key, "it preempts "+next.Key.String()
	}
	if len(c.Held) > 0 {
		v.Answer = plan.Reject
	}
	return v
}

// isResize reports whether the pod already runs in another size. Other pods are not stopped
// for a resize.
func (c *candidate) isResize() bool {
	return slices.ContainsFunc(c.Held, func(p *manifest.Pod) bool { return p.UID == c.Desired.UID && p.Hash == c.Desired.Hash })
}
