package device

import (
	"encoding/json"
	"slices"

	"podd/runtime"
)

// Held is what containers are seen to have, by name, resource and ID: what
// runtime.AnnotationDevices says.
type Held map[string]map[string][]string

// Seen is what is written on the containers of an incarnation. What does not
// decode was not written by podd.
func Seen(inc *runtime.Incarnation) Held {
	var all Held
	for i := range inc.Containers {
		c := &inc.Containers[i]
		var ids map[string][]string
		if text := c.Annotations[runtime.AnnotationDevices]; text == "" || json.Unmarshal([]byte(text), &ids) != nil {
			continue
		}
		if all == nil {
			all = Held{}
		}
		all[c.Name] = ids
	}
	return all
}

// Sees is whether Seen could be of anything.
func Sees(inc *runtime.Incarnation) bool {
	return slices.ContainsFunc(inc.Containers, func(c runtime.Container) bool { return c.Annotations[runtime.AnnotationDevices] != "" })
}

// Held is whether any pod has devices, or is being given some.
func (l *Ledger) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pods) > 0
}

// Hold tells which pods may have devices, with what is seen of them. With whole
// these are all, and what others have is free, but for those that are being
// started. What is seen and not known, since the file is lost, is theirs.
func (l *Ledger) Hold(holders map[Holder]Held, whole bool) {
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
				l.findLocked(h, container, resource, ids)
			}
		}
	}
}

// findLocked takes what a container is seen to have, unless something of it was
// given to another since.
func (l *Ledger) findLocked(h Holder, container, resource string, ids []string) {
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
		l.pods[h] = given{}
	}
	l.pods[h].put(container, Grant{Resource: resource, IDs: slices.Sorted(slices.Values(ids)), NUMA: l.nearLocked(resource, ids)})
	l.revision++
}

// nearLocked are the NUMA nodes that devices are near.
func (l *Ledger) nearLocked(resource string, ids []string) map[string][]int64 {
	near := map[string][]int64{}
	if s := l.resources[resource]; s != nil {
		for _, id := range ids {
			if nodes := s.devices[id].NUMA; len(nodes) > 0 {
				near[id] = nodes
			}
		}
	}
	return near
}
