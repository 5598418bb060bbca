package status

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/device/allocation"
)

// deviceHealth returns the health of the devices that are allocated to a regular container
// (KEP-4680), in the order of their resources; nil if there are none. Like the kubelet, it returns
// nil for other containers, and a device that its plugin does not report counts as healthy.
func (c *observedContainer) deviceHealth() []v1.ResourceStatus {
	if c.role != regularRole {
		return nil
	}
	ids := allocation.ContainerIDs(c.last)
	var all []v1.ResourceStatus
	for _, resource := range slices.Sorted(maps.Keys(ids)) {
		r := v1.ResourceStatus{Name: v1.ResourceName(resource)}
		for _, id := range ids[resource] {
			health := v1.ResourceHealth{ResourceID: v1.ResourceID(id), Health: v1.ResourceHealthStatusHealthy}
			if c.f.UnhealthyDevices.Has(resource, id) {
				health.Health = v1.ResourceHealthStatusUnhealthy
			}
			r.Resources = append(r.Resources, health)
		}
		all = append(all, r)
	}
	return all
}
