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
	ids := c.deviceIDs()
	var statuses []v1.ResourceStatus
	for _, resource := range slices.Sorted(maps.Keys(ids)) {
		r := v1.ResourceStatus{Name: v1.ResourceName(resource)}
		for _, id := range ids[resource] {
			health := v1.ResourceHealth{ResourceID: v1.ResourceID(id), Health: v1.ResourceHealthStatusHealthy}
			if c.f.UnhealthyDevices.Has(resource, id) {
				health.Health = v1.ResourceHealthStatusUnhealthy
			}
			r.Resources = append(r.Resources, health)
		}
		statuses = append(statuses, r)
	}
	return statuses
}

// deviceIDs returns the devices of a container by resource. If the container was not created yet in
// the newest sandbox, these are the devices that were allocated before the sandbox was created.
func (c *observedContainer) deviceIDs() map[string][]string {
	isCurrent := c.record != nil && (c.sandbox == nil || c.record.SandboxID == c.sandbox.ID)
	if !isCurrent && c.sandbox != nil {
		if ids := allocation.SandboxIDs(&c.sandbox.Sandbox)[c.spec.Name]; ids != nil {
			return ids
		}
	}
	if c.record == nil {
		return nil
	}
	return allocation.ContainerIDs(c.record)
}
