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

// requestsOf returns the requests of a pod for the resources in limits and for huge pages. It
// returns an empty result if there are no limits.
func requestsOf(p *manifest.Pod, limits Amounts) Amounts {
	n := Amounts{}
	if len(limits) == 0 {
		return n
	}
	for name, q := range manifest.PodRequests(p.Object) {
		if _, hasLimit := limits[name]; hasLimit || manifest.IsHugePagesResource(name) {
			n[name] = amountOf(name, q)
		}
	}
	return n
}

// maxAmount is more than any node has. A thousand times maxAmount does not overflow an int64.
const maxAmount = 1 << 52

// amountOf returns q in the unit of Amounts, at most maxAmount.
func amountOf(name v1.ResourceName, q resource.Quantity) int64 {
	if q.CmpInt64(maxAmount/1000) > 0 && name == v1.ResourceCPU || q.CmpInt64(maxAmount) > 0 {
		return maxAmount
	}
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// maximum returns the larger amount of a and b for each resource.
func (a Amounts) maximum(b Amounts) Amounts {
	result := maps.Clone(a)
	for name, n := range b {
		result[name] = max(result[name], n)
	}
	return result
}

func (a Amounts) add(b Amounts) {
	for name, n := range b {
		a[name] += n
	}
}

func (a Amounts) subtract(b Amounts) {
	for name, n := range b {
		a[name] -= n
	}
}

// nodeRequests contains the amounts that pods on the node have reserved. Two versions of one name
// never run at the same time. Therefore, for each resource, a name reserves only the maximum of the
// requests of its versions.
type nodeRequests struct {
	limits    Amounts
	requested Amounts
	releasing Amounts // the part of requested that is being released
}

// newNodeRequests returns a nodeRequests with the amounts that the candidates already have.
func newNodeRequests(candidates []candidate, limits Amounts) *nodeRequests {
	s := &nodeRequests{limits: limits, requested: Amounts{}, releasing: Amounts{}}
	if len(limits) == 0 {
		return s
	}
	for i := range candidates {
		s.requested.add(candidates[i].heldAmounts(limits))
		s.releasing.add(candidates[i].releasedAmounts(limits))
	}
	return s
}

// heldAmounts returns the amounts that the name already has: for each resource, the maximum of the
// requests of c.ReservedVersions.
func (c *candidate) heldAmounts(limits Amounts) Amounts {
	n := Amounts{}
	for _, p := range c.ReservedVersions {
		n = n.maximum(requestsOf(p, limits))
	}
	return n
}

// releasedAmounts returns the part of heldAmounts that is being released.
func (c *candidate) releasedAmounts(limits Amounts) Amounts {
	n := c.heldAmounts(limits)
	switch {
	case c.Desired == nil && !c.Unconfirmed || c.isFinishedOrWindingDown():
		return n
	case !c.Releasing:
		return nil
	}
	for name, requested := range requestsOf(c.Desired, limits) {
		n[name] = max(n[name]-requested, 0)
	}
	return n
}

// admit returns the verdict for the amounts of the desired version, and reserves the amounts if the
// verdict is Admit. Amounts that the name already has are always admitted.
func (s *nodeRequests) admit(c candidate) plan.Verdict {
	ownAmounts, requests := c.heldAmounts(s.limits), requestsOf(c.Desired, s.limits)
	usedByOthers, releasing := maps.Clone(s.requested), maps.Clone(s.releasing)
	usedByOthers.subtract(ownAmounts)
	releasing.subtract(c.releasedAmounts(s.limits))
	names := slices.Sorted(maps.Keys(requests))
	if c.traits().FailsIfRejected {
		names = sortInKubeletOrder(names)
	}
	for _, name := range names {
		limit := s.limits[name]
		if requests[name] <= ownAmounts[name] || usedByOthers[name]+requests[name] <= limit {
			continue
		}
		v := rejectInsufficient(name)
		v.NeverFits, v.BlockedByPods = requests[name] > limit, requests[name] <= limit
		v.Message = fmt.Sprintf("the pod requests %s of %s; the node has %s for pods, of which other pods request %s",
			formatAmount(name, requests[name]), name, formatAmount(name, limit), formatAmount(name, usedByOthers[name]))
		if c.traits().FailsIfRejected {
			v.Message = formatInsufficient(name, requests[name], usedByOthers[name], limit)
		}
		if usedByOthers[name]-releasing[name]+requests[name] <= limit {
			v.Answer = plan.Wait
			v.Message += ", which are being stopped"
		}
		return v
	}
	s.reserve(c)
	return plan.Verdict{}
}

// reserve adds to s.requested the amounts by which the desired version exceeds the reservations of
// the name.
func (s *nodeRequests) reserve(c candidate) {
	ownAmounts, requested := c.heldAmounts(s.limits), maps.Clone(s.requested)
	requested.subtract(ownAmounts)
	requested.add(ownAmounts.maximum(requestsOf(c.Desired, s.limits)))
	s.requested = requested
}

// formatAmount returns an amount as a quantity in the format of manifests.
func formatAmount(name v1.ResourceName, n int64) string {
	if name == v1.ResourceCPU {
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	}
	if manifest.IsExtendedResource(name) {
		return strconv.FormatInt(n, 10)
	}
	return resource.NewQuantity(n, resource.BinarySI).String()
}
