package plan

import (
	"slices"

	"podd/manifest"
)

// makeRoom answers for a pod of a file or URL that there is too little for, by why.
// What a cluster has bound here gives way to it, as with a kubelet; and what it may
// have bound here, nobody knows yet, is not in its way: it may be what the API server
// is run by. An earlier version of it runs on meanwhile.
func (a *admissions) makeRoom(c Claimant, why Verdict) Verdict {
	if v := a.limits.admitDevices(c); v.Answer != Admit {
		return v // room would not help it
	}
	if v := a.once(c); v.Answer == Reject {
		return v
	}
	places, amounts := 0, Amounts{}
	for i := range a.all {
		if o := &a.all[i]; o.Unseen {
			amounts.add(o.held(a.shares.limits))
			if o.Present {
				places++
			}
		}
	}
	if len(a.lacks(c, places, amounts)) == 0 {
		if v := a.once(c); v.Answer != Admit {
			return v
		}
		if !c.Present {
			a.places.taken++
		}
		a.shares.take(c)
		return Verdict{}
	}
	amounts.add(a.shares.leaving)
	short := a.lacks(c, places+a.places.leaving, amounts)
	v := givingWay("pods that give way to it are ending")
	if len(short) > 0 {
		next, ok := a.giveWay(c.Wants, short)
		if !ok {
			return why
		}
		v.Preempts, v.Message = next.Key, next.Key.String()+" gives way to it"
	}
	if len(c.Holds) > 0 {
		v.Answer = Reject
	}
	return v
}

// resizes: what is wanted is there, in another size. Nothing gives way to that.
func (c *Claimant) resizes() bool {
	return slices.ContainsFunc(c.Holds, func(p *manifest.Pod) bool { return p.UID == c.Wants.UID && p.Hash == c.Wants.Hash })
}
