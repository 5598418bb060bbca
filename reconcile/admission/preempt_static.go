package admission

import (
	"slices"

	"podd/manifest"
	"podd/reconcile/plan"
)

// makeRoom returns the verdict for a pod of a file or URL for which there is not enough
// room. Pods that a cluster has bound to this node are stopped for it, as in a kubelet.
// Pods that the cluster has not confirmed yet do not block it, because it may be what runs
// the API server. Meanwhile an earlier version of it keeps running.
func (a *admissions) makeRoom(c Claimant, why plan.Verdict) plan.Verdict {
	if v := a.limits.admitDevices(c); v.Answer != plan.Admit {
		return v // preemption would not help
	}
	if v := a.admitExclusive(c); v.Answer == plan.Reject {
		return v
	}
	places, amounts := 0, Amounts{}
	for i := range a.all {
		if o := &a.all[i]; o.Unconfirmed {
			amounts.add(o.held(a.shares.limits))
			if o.Present {
				places++
			}
		}
	}
	if len(a.lacks(c, places, amounts)) == 0 {
		if v := a.admitExclusive(c); v.Answer != plan.Admit {
			return v
		}
		if !c.Present {
			a.places.taken++
		}
		a.shares.take(c)
		return plan.Verdict{}
	}
	amounts.add(a.shares.leaving)
	short := a.lacks(c, places+a.places.leaving, amounts)
	v := waitForPreempted("the pods that it preempts are being stopped")
	if len(short) > 0 {
		next, ok := a.nextToPreempt(c.Wants, short)
		if !ok {
			return why
		}
		v.Preempts, v.Message = next.Key, "it preempts "+next.Key.String()
	}
	if len(c.Holds) > 0 {
		v.Answer = plan.Reject
	}
	return v
}

// resizes reports whether the pod already runs in another size. Other pods are not stopped
// for a resize.
func (c *Claimant) resizes() bool {
	return slices.ContainsFunc(c.Holds, func(p *manifest.Pod) bool { return p.UID == c.Wants.UID && p.Hash == c.Wants.Hash })
}
