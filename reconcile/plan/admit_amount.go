package plan

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
)

// need is what pods ask for.
type need struct{ milliCPU, memory int64 }

func needOf(p *manifest.Pod) need {
	requests := manifest.PodRequests(&p.Spec.Spec)
	return need{requests.Cpu().MilliValue(), requests.Memory().Value()}
}

func (n need) most(m need) need { return need{max(n.milliCPU, m.milliCPU), max(n.memory, m.memory)} }

// amounts is what is taken of the node's cpu and memory. Versions of one name
// never run side by side: of each it takes the greatest.
type amounts struct {
	limits  Limits
	taken   need
	leaving need // part of taken that is on its way out
}

func heldAmounts(claimants []Claimant, limits Limits) *amounts {
	a := &amounts{limits: limits}
	if limits.MilliCPU <= 0 && limits.Memory <= 0 {
		return a
	}
	for i := range claimants {
		a.taken.add(claimants[i].held(), 1)
		a.leaving.add(claimants[i].leaving(), 1)
	}
	return a
}

func (n *need) add(m need, times int64) {
	n.milliCPU += times * m.milliCPU
	n.memory += times * m.memory
}

// held is what the name has already. Of what ran before podd came, and is wanted,
// it has all that it wants.
func (c *Claimant) held() need {
	if c.Present && len(c.Holds) == 0 && c.Wants != nil {
		return needOf(c.Wants)
	}
	var n need
	for _, p := range c.Holds {
		n = n.most(needOf(p))
	}
	return n
}

// leaving is the part of held that is being given up.
func (c *Claimant) leaving() need {
	held := c.held()
	switch {
	case c.Wants == nil || c.Rests:
		return held
	case !c.Yields:
		return need{}
	}
	wants := needOf(c.Wants)
	return need{max(held.milliCPU-wants.milliCPU, 0), max(held.memory-wants.memory, 0)}
}

// admit: what runs is never put out for what it asks.
func (a *amounts) admit(c Claimant) Verdict {
	if a.limits.MilliCPU <= 0 && a.limits.Memory <= 0 {
		return Verdict{}
	}
	held, wants := c.held(), needOf(c.Wants)
	others, leaving := a.taken, a.leaving
	others.add(held, -1)
	leaving.add(c.leaving(), -1)
	for _, r := range []struct {
		name                               v1.ResourceName
		wants, held, others, leaving, most int64
		scale                              resource.Scale
		format                             resource.Format
	}{
		{v1.ResourceCPU, wants.milliCPU, held.milliCPU, others.milliCPU, leaving.milliCPU, a.limits.MilliCPU, resource.Milli, resource.DecimalSI},
		{v1.ResourceMemory, wants.memory, held.memory, others.memory, leaving.memory, a.limits.Memory, 0, resource.BinarySI},
	} {
		if r.most <= 0 || r.wants <= r.held || r.others+r.wants <= r.most {
			continue
		}
		text := func(n int64) string {
			q := resource.NewScaledQuantity(n, r.scale)
			q.Format = r.format
			return q.String()
		}
		v := Verdict{Answer: Reject, Reason: "OutOf" + string(r.name)}
		v.Message = fmt.Sprintf("it asks for %s of %s; the node has %s for pods and others ask for %s", text(r.wants), r.name, text(r.most), text(r.others))
		if r.others-r.leaving+r.wants <= r.most {
			v.Answer = Wait
			v.Message += ", which are ending"
		}
		return v
	}
	a.taken = others
	a.taken.add(held.most(wants), 1)
	return Verdict{}
}
