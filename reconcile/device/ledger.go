package device

import (
	"context"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"podd/reconcile/plan"
)

// Plugin serves the devices of one resource. Each call ends soon after ctx does,
// and after a time of its own where the plugin does not answer.
type Plugin interface {
	// Preferred is what the plugin would give of what is available, must included;
	// nil where it has no opinion.
	Preferred(ctx context.Context, available, must []string, n int) ([]string, error)
	Allocate(ctx context.Context, ids []string) (*v1beta1.ContainerAllocateResponse, error)
	// PreStart is called before each start of a container where Prepares.
	PreStart(ctx context.Context, ids []string) error
	Prepares() bool
}

// Ledger knows the devices of this machine and who has them. Its methods may be
// called from anywhere.
type Ledger struct {
	file    string
	changed chan struct{} // capacity 1

	saving sync.Mutex // taken before mu; guards the file and saved
	saved  uint64

	mu        sync.Mutex // guards all following fields
	revision  uint64     // of pods
	resources map[string]*supply
	pods      map[Holder]given
	using     map[Holder]int           // calls of Use that are not done
	turns     map[Holder]chan struct{} // closed when an allocation is over
}

// supply is what a plugin serves.
type supply struct {
	plugin  Plugin
	listed  bool // devices came from it
	devices map[string]Device
}

// Changed has a value whenever Counts may have changed since the last one.
func (l *Ledger) Changed() <-chan struct{} { return l.changed }

func (l *Ledger) tell() {
	select {
	case l.changed <- struct{}{}:
	default: // it was not heard yet
	}
}

// Serve makes plugin the one of a resource; one that was before it is none any
// more. It has no devices until it lists some.
func (l *Ledger) Serve(resource string, plugin Plugin) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resources[resource] = &supply{plugin: plugin}
	l.tell()
}

// Update takes what a plugin lists, unless it is the resource's no more.
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
		l.tell()
	}
}

// Leave forgets a plugin, unless it is the resource's no more. Who has devices of
// it keeps them.
func (l *Ledger) Leave(resource string, plugin Plugin) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.resources[resource]; s != nil && s.plugin == plugin {
		delete(l.resources, resource)
		l.tell()
	}
}

// Counts are what pods can be admitted by.
func (l *Ledger) Counts() map[v1.ResourceName]plan.Devices {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[v1.ResourceName]plan.Devices{}
	for resource, held := range l.heldLocked() {
		counts[v1.ResourceName(resource)] = plan.Devices{Total: int64(held.Len())}
	}
	for resource, s := range l.resources {
		n := counts[v1.ResourceName(resource)].Total + int64(len(l.freeLocked(resource)))
		counts[v1.ResourceName(resource)] = plan.Devices{Total: n, Served: s.listed}
	}
	return counts
}

// heldLocked are all devices that pods have, by resource.
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

// freeLocked are the healthy devices of a resource that nobody has.
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

// Healthy are the devices that can be given, or are, by resource and in the order
// of their IDs.
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

// Of are the grants of a pod's container, whatever its version.
func (l *Ledger) Of(key types.NamespacedName, uid types.UID, container string) []Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h, g := range l.pods {
		if h.Key == key && h.UID == uid && len(g[container]) > 0 {
			return g.of(container)
		}
	}
	return nil
}
