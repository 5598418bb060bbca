package admission

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
	"podd/reconcile/plan"
)

// Amounts are quantities of resources: millicores, bytes, or devices.
type Amounts map[v1.ResourceName]int64

// requestsOf returns what a pod requests from a node with these limits. The node has only the
// sizes of huge pages that are in limits.
func requestsOf(p *manifest.Pod, limits Amounts) Amounts {
	n := Amounts{}
	if len(limits) == 0 {
		return n
	}
	for name, q := range manifest.PodRequests(&p.Spec.Spec) {
		if _, shared := limits[name]; shared || manifest.IsHugePages(name) {
			n[name] = amountOf(name, q)
		}
	}
	return n
}

// maxAmount exceeds the capacity of any node; a thousand of them can be added without
// overflow.
const maxAmount = 1 << 52

func amountOf(name v1.ResourceName, q resource.Quantity) int64 {
	if q.CmpInt64(maxAmount/1000) > 0 && name == v1.ResourceCPU || q.CmpInt64(maxAmount) > 0 {
		return maxAmount
	}
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// maximum returns the maximum of both for each resource.
func (a Amounts) maximum(b Amounts) Amounts {
	sum := maps.Clone(a)
	for name, n := range b {
		sum[name] = max(sum[name], n)
	}
	return sum
}

func (a Amounts) add(b Amounts) {
	for name, n := range b {
		a[name] += n
	}
}

func (a Amounts) take(b Amounts) {
	for name, n := range b {
		a[name] -= n
	}
}

// nodeRequests contains the amounts in use on the node. Versions of one name never run at the
// same time, so for each resource a name takes the maximum over its versions.
type nodeRequests struct {
	limits  Amounts
	taken   Amounts
	leaving Amounts // the part of taken that is being released
}

func heldRequests(candidates []candidate, limits Amounts) *nodeRequests {
	s := &nodeRequests{limits: limits, taken: Amounts{}, leaving: Amounts{}}
	if len(limits) == 0 {
		return s
	}
	for i := range candidates {
		s.taken.add(candidates[i].held(limits))
		s.leaving.add(candidates[i].leaving(limits))
	}
	return s
}

// held returns what the name already has.
func (c *candidate) held(limits Amounts) Amounts {
	n := Amounts{}
	for _, p := range c.Held {
		n = n.maximum(requestsOf(p, limits))
	}
	return n
}

// leaving returns the part of held that is being released.
func (c *candidate) leaving(limits Amounts) Amounts {
	n := c.held(limits)
	switch {
	case c.Desired == nil && !c.Unconfirmed || c.hasFinished():
		return n
	case !c.Releasing:
		return nil
	}
	for name, wants := range requestsOf(c.Desired, limits) {
		n[name] = max(n[name]-wants, 0)
	}
	return n
}

// admit checks the amounts. It never rejects what already runs because of its requests.
func (s *nodeRequests) admit(c candidate) plan.Verdict {
	held, wants := c.held(s.limits), requestsOf(c.Desired, s.limits)
	others, leaving := maps.Clone(s.taken), maps.Clone(s.leaving)
	others.take(held)
	leaving.take(c.leaving(s.limits))
	names := slices.Sorted(maps.Keys(wants))
	if c.traits().FailsIfRejected {
		names = inKubeletOrder(names)
	}
	for _, name := range names {
		limit := s.limits[name]
		if wants[name] <= held[name] || others[name]+wants[name] <= limit {
			continue
		}
		v := plan.Verdict{Answer: plan.Reject, Reason: reasonOf(name), NeverFits: wants[name] > limit}
		v.Message = fmt.Sprintf("it requests %s of %s; the node has %s for pods, of which others request %s",
			formatAmount(name, wants[name]), name, formatAmount(name, limit), formatAmount(name, others[name]))
		if c.traits().FailsIfRejected {
			v.Message = kubeletMessage(name, wants[name], others[name], limit)
		}
		if others[name]-leaving[name]+wants[name] <= limit {
			v.Answer = plan.Wait
			v.Message += ", which are being stopped"
		}
		return v
	}
	s.take(c)
	return plan.Verdict{}
}

func (s *nodeRequests) take(c candidate) {
	held, taken := c.held(s.limits), maps.Clone(s.taken)
	taken.take(held)
	taken.add(held.maximum(requestsOf(c.Desired, s.limits)))
	s.taken = taken
}

// formatAmount returns an amount in the format of manifests.
func formatAmount(name v1.ResourceName, n int64) string {
	if name == v1.ResourceCPU {
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	}
	if manifest.IsExtended(name) {
		return strconv.FormatInt(n, 10)
	}
	return resource.NewQuantity(n, resource.BinarySI).String()
}
