package device

import (
	"slices"

	"podd/reconcile/device/allocation"
)

// Held reports whether any pod has devices or is being allocated some.
func (l *Ledger) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pods) > 0
}

// Hold sets which pods may have devices, with the devices in their annotations. If whole
// is true, holders has all such pods, and the devices of other pods are released except
// for those of pods in Use. Devices in annotations that are not in the ledger, because
// its file was lost, are added to it.
func (l *Ledger) Hold(holders map[allocation.PodVersion]allocation.IDs, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h := range l.pods {
		if _, holds := holders[h]; whole && !holds && l.using[h] == 0 {
			delete(l.pods, h)
			l.revision++
		}
	}
	for h, seen := range holders {
		for container, resources := range seen {
			for resource, ids := range resources {
				l.adoptLocked(h, container, resource, ids)
			}
		}
	}
}

// adoptLocked records the devices in the annotation of a container, unless one of them was
// allocated to another pod since.
func (l *Ledger) adoptLocked(h allocation.PodVersion, container, resource string, ids []string) {
	if len(ids) == 0 || len(l.pods[h].ids(container, resource)) > 0 {
		return
	}
	for other, pod := range l.pods {
		for _, grants := range pod {
			if other != h && slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(grants[resource].IDs, id) }) {
				return
			}
		}
	}
	if l.pods[h] == nil {
		l.pods[h] = grantMap{}
	}
	l.pods[h].put(container, Grant{Resource: resource, IDs: slices.Sorted(slices.Values(ids)), NUMA: l.numaLocked(resource, ids)})
	l.revision++
}

// numaLocked returns the NUMA nodes of devices by ID.
func (l *Ledger) numaLocked(resource string, ids []string) map[string][]int64 {
	numa := map[string][]int64{}
	if s := l.resources[resource]; s != nil {
		for _, id := range ids {
			if nodes := s.devices[id].NUMA; len(nodes) > 0 {
				numa[id] = nodes
			}
		}
	}
	return numa
}
