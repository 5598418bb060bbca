package device

import (
	"slices"

	"podd/reconcile/device/allocation"
)

// HasAllocations reports whether devices are allocated to any pod, or are being allocated.
func (m *Manager) HasAllocations() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pods) > 0
}

// SetHolders sets which pods may have devices. The values of holders are the devices in the
// annotations of the pods' containers. If the file was lost, the Manager has no record of these
// devices, and SetHolders records them. If isComplete is true, holders contains all pods that may
// have devices. SetHolders then releases the devices of other pods. It does not release the devices
// of a pod between Acquire and the call of the function done that Acquire returned.
func (m *Manager) SetHolders(holders map[allocation.PodVersion]allocation.IDs, isComplete bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for h := range m.pods {
		if _, isHolder := holders[h]; isComplete && !isHolder && m.usesInProgress[h] == 0 {
			delete(m.pods, h)
			m.revision++
		}
	}
	for h, ids := range holders {
		for container, resources := range ids {
			for resource, ids := range resources {
				m.adoptLocked(h, container, resource, ids)
			}
		}
	}
}

// adoptLocked records the devices in the annotation of a container. It does nothing if the
// container already has devices of the resource, or if one of the devices is allocated to another
// pod.
func (m *Manager) adoptLocked(h allocation.PodVersion, container, resource string, ids []string) {
	if len(ids) == 0 || len(m.pods[h].ids(container, resource)) > 0 {
		return
	}
	for otherVersion, pod := range m.pods {
		for _, grants := range pod {
			if otherVersion != h && slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(grants[resource].IDs, id) }) {
				return
			}
		}
	}
	if m.pods[h] == nil {
		m.pods[h] = grantMap{}
	}
	m.pods[h].put(container, Grant{Resource: resource, IDs: slices.Sorted(slices.Values(ids)), NUMA: m.numaNodesLocked(resource, ids)})
	m.revision++
}

// numaNodesLocked returns the NUMA nodes of the devices with these IDs, by ID.
func (m *Manager) numaNodesLocked(resource string, ids []string) map[string][]int64 {
	numa := map[string][]int64{}
	if s := m.resources[resource]; s != nil {
		for _, id := range ids {
			if nodes := s.devices[id].NUMA; len(nodes) > 0 {
				numa[id] = nodes
			}
		}
	}
	return numa
}
