package device

import (
	"context"
	"maps"
	"slices"
	"sync"

	"podd/reconcile/device/allocation"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// A Plugin serves the devices of one resource. Each call returns soon after ctx is done,
// and has a timeout.
type Plugin interface {
	// Preferred returns the n devices of available that the plugin prefers, including
	// those in must; nil if it has no preference.
	Preferred(ctx context.Context, available, must []string, n int) ([]string, error)
	Allocate(ctx context.Context, ids []string) (*v1beta1.ContainerAllocateResponse, error)
	// PreStart is called before each start of a container if Prepares returns true.
	PreStart(ctx context.Context, ids []string) error
	Prepares() bool
}

// A Ledger has the devices of this node and their allocation to pods. It is safe for
// concurrent use.
type Ledger struct {
	file    string
	changed chan struct{} // capacity 1

	saving     sync.Mutex // taken before mu; guards the file and the following two fields
	saved      uint64     // the revision in the file
	unreadable bool       // Open could not read the file, and it is still in its place

	mu         sync.Mutex // guards all following fields
	revision   uint64     // of pods
	resources  map[string]*served
	pods       map[allocation.PodVersion]grantMap
	using      map[allocation.PodVersion]int           // calls of Use that are not done
	allocating map[allocation.PodVersion]chan struct{} // closed when the allocation is finished
}

// served has the plugin of a resource and its devices.
type served struct {
	plugin  Plugin
	listed  bool // whether the plugin has listed its devices
	devices map[string]Device
}

// Changed returns a channel that has a value when Counts may have changed since the last
// value was received.
func (l *Ledger) Changed() <-chan struct{} { return l.changed }

func (l *Ledger) notify() {
	select {
	case l.changed <- struct{}{}:
	default: // a value is pending
	}
}

// Serve sets the plugin of a resource and replaces a previous one. The resource has no
// devices until Update is called.
func (l *Ledger) Serve(resource string, plugin Plugin) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resources[resource] = &served{plugin: plugin}
	l.notify()
}

// Update sets the devices of a resource. It does nothing if plugin is no longer the
// plugin of the resource.
func (l *Ledger) Update(resource string, plugin Plugin, devices []Device) {
	all := make(map[string]Device, len(devices))
	for _, d := range devices {
		all[d.ID] = d
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.resources[resource]
	if s == nil || s.plugin != plugin {
		return
	}
	same := s.listed && maps.EqualFunc(s.devices, all, func(a, b Device) bool { return a.Healthy == b.Healthy })
	s.devices, s.listed = all, true
	if !same {
		l.notify()
	}
}

// Leave removes the plugin of a resource. It does nothing if plugin is no longer the
// plugin of the resource. Pods keep its devices.
func (l *Ledger) Leave(resource string, plugin Plugin) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.resources[resource]; s != nil && s.plugin == plugin {
		delete(l.resources, resource)
		l.notify()
	}
}

// Counts returns the numbers of devices by which pods are admitted.
func (l *Ledger) Counts() map[v1.ResourceName]allocation.Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[v1.ResourceName]allocation.Count{}
	for resource, held := range l.heldLocked() {
		counts[v1.ResourceName(resource)] = allocation.Count{Total: int64(held.Len())}
	}
	for resource, s := range l.resources {
		n := counts[v1.ResourceName(resource)].Total + int64(len(l.freeLocked(resource)))
		counts[v1.ResourceName(resource)] = allocation.Count{Total: n, Served: s.listed}
	}
	return counts
}

// heldLocked returns all allocated devices by resource.
func (l *Ledger) heldLocked() map[string]sets.Set[string] {
	held := map[string]sets.Set[string]{}
	for _, pod := range l.pods {
		for _, grants := range pod {
			for resource, g := range grants {
				if held[resource] == nil {
					held[resource] = sets.New[string]()
				}
				held[resource].Insert(g.IDs...)
			}
		}
	}
	return held
}

// freeLocked returns the healthy devices of a resource that are not allocated.
func (l *Ledger) freeLocked(resource string) []string {
	s := l.resources[resource]
	if s == nil {
		return nil
	}
	held := l.heldLocked()[resource]
	var free []string
	for id, d := range s.devices {
		if d.Healthy && !held.Has(id) {
			free = append(free, id)
		}
	}
	return free
}

// Healthy returns the healthy devices, allocated or not, by resource in the order of
// their IDs.
func (l *Ledger) Healthy() map[string][]Device {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string][]Device{}
	for resource, s := range l.resources {
		for _, id := range slices.Sorted(maps.Keys(s.devices)) {
			if d := s.devices[id]; d.Healthy {
				all[resource] = append(all[resource], d)
			}
		}
	}
	return all
}

// Of returns the grants of a pod's container in any version of the pod.
func (l *Ledger) Of(key types.NamespacedName, uid types.UID, container string) []Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h, g := range l.pods {
		if h.Key == key && h.UID == uid && len(g[container]) > 0 {
			return g.list(container)
		}
	}
	return nil
}
