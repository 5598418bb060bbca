package device

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"podd/manifest"
	"podd/manifest/order"
	"podd/reconcile/device/allocation"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// A Plugin serves the devices of one resource. Each method that takes a context returns soon after
// the context is done, and has a timeout.
type Plugin interface {
	// PreferredDevices returns the devices that the plugin prefers, as many as size. They are from
	// the list available, and include all devices in the list mustInclude. PreferredDevices returns
	// nil if the plugin has no preference.
	PreferredDevices(ctx context.Context, available, mustInclude []string, size int) ([]string, error)
	Allocate(ctx context.Context, ids []string) (*v1beta1.ContainerAllocateResponse, error)
	// PreStart is called before each start of a container if RequiresPreStart returns true.
	PreStart(ctx context.Context, ids []string) error
	RequiresPreStart() bool
}

// A Manager allocates the devices of this node to pods. Its methods may be called concurrently.
type Manager struct {
	file             string
	changed          chan struct{} // see Changed; capacity 1
	resourcesChanged chan struct{} // capacity 1; wakes Run
	openedAt         time.Time
	isNew            bool // whether the file did not exist when the Manager was opened

	saveMu        sync.Mutex // taken before mu; guards the file and the following three fields
	savedRevision uint64     // revision of the allocations in the file
	savedNames    []string   // names of resources in the file, sorted
	isUnreadable  bool       // whether the file is unreadable and not renamed yet

	mu                    sync.Mutex // guards all following fields
	revision              uint64     // incremented with each change of pods
	resources             map[string]*pluginResource
	pods                  map[allocation.PodVersion]grantMap
	usesInProgress        map[allocation.PodVersion]int           // calls of Acquire whose result done was not called yet
	allocationsInProgress map[allocation.PodVersion]chan struct{} // closed when the allocation has finished
}

// Changed returns a channel that receives a value when the result of Counts may have changed.
func (m *Manager) Changed() <-chan struct{} { return m.changed }

func (m *Manager) signalChange() { signal(m.changed) }

// signalResources makes Run check the resources again.
func (m *Manager) signalResources() { signal(m.resourcesChanged) }

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // the pending value also signals this change
	}
}

// Register adds a plugin of a resource. The plugin is used after it has listed its devices with
// SetDevices. Until then, an earlier plugin remains in use.
func (m *Manager) Register(resource string, plugin Plugin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.resources[resource]
	if s == nil {
		s = &pluginResource{}
		m.resources[resource] = s
	}
	s.register(plugin, time.Now())
	m.signalChange()
	m.signalResources()
}

// SetDevices sets the devices that a plugin lists. It does nothing if the plugin is not registered for
// the resource.
func (m *Manager) SetDevices(resource string, plugin Plugin, devices []Device) {
	devicesByID := make(map[string]Device, len(devices))
	for _, d := range devices {
		devicesByID[d.ID] = d
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.resources[resource]
	if s == nil {
		return
	}
	isFirst := !s.wasListed
	if s.setDevices(plugin, devicesByID) {
		m.signalChange()
	}
	if isFirst && s.wasListed {
		m.signalResources()
	}
}

// Unregister removes a plugin. If another plugin of the resource is registered, it is used from now
// on. Otherwise the devices are no longer allocated, and count as capacity for stopGracePeriod. Pods
// keep the devices of the resource. Unregister does nothing if the plugin is not registered.
func (m *Manager) Unregister(resource string, plugin Plugin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.resources[resource]; s != nil && s.unregister(plugin, time.Now()) {
		m.signalChange()
		m.signalResources()
	}
}

// Counts returns the number of devices by resource. The router admits pods by these numbers. The
// result also contains resources that a plugin has served before podd was started.
func (m *Manager) Counts() map[v1.ResourceName]allocation.Count {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[v1.ResourceName]allocation.Count{}
	allocated := m.allocatedLocked()
	for resource, ids := range allocated {
		counts[v1.ResourceName(resource)] = allocation.Count{Total: int64(ids.Len())}
	}
	for resource, s := range m.resources {
		c := counts[v1.ResourceName(resource)]
		c.IsServed, c.IsAwaited = s.isServed(), s.isAwaited(now)
		if s.countsDevices(now) {
			c.Listed = int64(len(s.devices))
		}
		for id := range s.devices {
			if !s.isHealthy(id) {
				continue
			}
			c.Healthy++
			if !allocated[resource].Has(id) {
				c.Total++
			}
		}
		counts[v1.ResourceName(resource)] = c
	}
	return counts
}

// AwaitsPlugins reports whether plugins may still register for resources that Counts does not
// contain, because the Manager was opened only a short time ago.
func (m *Manager) AwaitsPlugins() bool { return time.Since(m.openedAt) < awaitPeriod }

// allocatedLocked returns all allocated devices by resource.
func (m *Manager) allocatedLocked() map[string]sets.Set[string] {
	idsByResource := map[string]sets.Set[string]{}
	for _, pod := range m.pods {
		for _, grants := range pod {
			for resource, g := range grants {
				if idsByResource[resource] == nil {
					idsByResource[resource] = sets.New[string]()
				}
				idsByResource[resource].Insert(g.IDs...)
			}
		}
	}
	return idsByResource
}

// freeLocked returns the IDs of the healthy devices of a resource that are not allocated.
func (m *Manager) freeLocked(resource string) []string {
	s := m.resources[resource]
	if !s.isServed() {
		return nil
	}
	allocatedIDs := m.allocatedLocked()[resource]
	var freeIDs []string
	for id, d := range s.devices {
		if d.Healthy && !allocatedIDs.Has(id) {
			freeIDs = append(freeIDs, id)
		}
	}
	return freeIDs
}

// HealthyDevices returns the healthy devices, allocated or not, by resource in the order of
// their IDs.
func (m *Manager) HealthyDevices() map[string][]Device {
	m.mu.Lock()
	defer m.mu.Unlock()
	devices := map[string][]Device{}
	for resource, s := range m.resources {
		for _, id := range slices.Sorted(maps.Keys(s.devices)) {
			if d := s.devices[id]; s.isHealthy(id) {
				devices[resource] = append(devices[resource], d)
			}
		}
	}
	return devices
}

// UnhealthyDevices returns the devices that their plugins reported as unhealthy in their newest
// lists. As in a kubelet, the devices of a plugin that has disconnected keep their health.
func (m *Manager) UnhealthyDevices() allocation.UnhealthyDevices {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := allocation.UnhealthyDevices{}
	for resource, s := range m.resources {
		for _, id := range slices.Sorted(maps.Keys(s.devices)) {
			if !s.devices[id].Healthy {
				ids[resource] = append(ids[resource], id)
			}
		}
	}
	return ids
}

// Allocated returns the devices that are allocated to the containers of a version of a pod; nil if
// there are none.
func (m *Manager) Allocated(pod *manifest.Pod) allocation.IDs {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids allocation.IDs
	for container, grants := range m.pods[versionOf(pod)] {
		for resource, g := range grants {
			if ids == nil {
				ids = allocation.IDs{}
			}
			if ids[container] == nil {
				ids[container] = map[string][]string{}
			}
			ids[container][resource] = g.IDs
		}
	}
	return ids
}

// Grants returns the devices of a pod's container, sorted by resource. While a version with this UID
// is replaced, both versions can have devices of a resource. Grants then returns a Grant for each
// version, in the order of their hashes.
func (m *Manager) Grants(key types.NamespacedName, uid types.UID, container string) []Grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	versions := slices.Collect(maps.Keys(m.pods))
	order.Slice(versions, func(a, b allocation.PodVersion) int { return strings.Compare(a.Hash, b.Hash) })
	var grants []Grant
	for _, h := range versions {
		if h.Key == key && h.UID == uid {
			grants = append(grants, m.pods[h].list(container)...)
		}
	}
	order.Stable(grants, func(a, b Grant) int { return strings.Compare(a.Resource, b.Resource) })
	return grants
}
