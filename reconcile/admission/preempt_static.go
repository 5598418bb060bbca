package admission

import (
	"slices"

	"podd/manifest"
	"podd/reconcile/plan"
)

// preemptForStatic returns the verdict for a pod of a file or URL if resources are insufficient.
// rejection is the verdict without preemption. As in a kubelet, pods of a cluster are stopped to
// make room for the pod.
//
// The reservations of candidates are ignored if Unconfirmed is set, because these candidates could
// otherwise prevent the start of the API server that must confirm them. If an earlier version of
// the pod runs, the verdict is Reject instead of Wait, so that the earlier version keeps running.
func (a *admitter) preemptForStatic(c candidate, rejection plan.Verdict) plan.Verdict {
	if v := a.limits.admitDevices(c); v.Answer != plan.Admit {
		return v // do not preempt other pods, because this verdict would not change
	}
	if v := a.checkExclusive(c); v.Answer == plan.Reject {
		return v
	}
	pods, amounts := 0, Amounts{}
	for i := range a.candidates {
		if o := &a.candidates[i]; o.Unconfirmed {
			amounts.add(o.heldAmounts(a.requests.limits))
			if o.Active {
				pods++
			}
		}
	}
	if len(a.shortage(c, pods, amounts)) == 0 {
		if v := a.checkExclusive(c); v.Answer != plan.Admit {
			return v
		}
		if !c.Active {
			a.pods.count++
		}
		a.requests.reserve(c)
		return plan.Verdict{}
	}
	amounts.add(a.requests.releasing)
	shortage := a.shortage(c, pods+a.pods.stoppingCount, amounts)
	v := waitForPreempted("other pods are being stopped so that this pod can run")
	if len(shortage) > 0 {
		victim, ok := a.nextVictim(c.Desired, shortage)
		if !ok {
			return rejection
		}
		v.Victim, v.VictimResource, v.Message = victim.Key, shortage.names()[0], "this pod preempts "+victim.Key.String()
	}
	if len(c.ReservedVersions) > 0 {
		v.Answer = plan.Reject
	}
	return v
}

// isResize reports whether the desired version may already run, possibly with another size. No
// other pod is stopped for a resize.
func (c *candidate) isResize() bool {
	return slices.ContainsFunc(c.ReservedVersions, func(p *manifest.Pod) bool { return p.UID == c.Desired.UID && p.Hash == c.Desired.Hash })
}
