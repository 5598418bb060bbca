package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"podd/manifest"
	"podd/reconcile/device/allocation"
)

// Acquire allocates the devices that the containers of a pod request, unless they are already
// allocated. It returns the grants of the container that is about to be created. Before the sandbox
// is created, container is "", and Acquire returns no grants. At that time no container of the pod
// runs, so Acquire replaces devices that are unhealthy or no longer listed. It returns an error until
// a plugin has listed devices of each resource since the Manager was opened. After a boot, the host
// may have other devices than those that are recorded.
//
// Acquire ignores resources of a cluster's pod that no plugin serves or has served, because another
// component has added them to the Node.
//
// Acquire releases the devices of an earlier version of the pod, because that version has been
// stopped. SetHolders does not release the pod's devices before done is called. The error contains
// the names of the container and the resource.
func (m *Manager) Acquire(ctx context.Context, pod *manifest.Pod, container string) (grants []Grant, done func(), err error) {
	h := versionOf(pod)
	requests := m.pluginRequests(pod, h)
	if len(requests) == 0 {
		return nil, func() {}, nil
	}
	done = m.beginUse(h)
	grants, err = m.acquire(ctx, pod, h, requests, container)
	if err != nil {
		done()
		return nil, nil, err
	}
	return grants, done, nil
}

func (m *Manager) acquire(ctx context.Context, pod *manifest.Pod, h allocation.PodVersion, requests []deviceRequest, container string) ([]Grant, error) {
	unlock, err := m.lockPod(ctx, h)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if container == "" {
		if err := m.checkListed(requests); err != nil {
			return nil, err
		}
		m.replaceUnhealthy(h, requests)
	}
	for _, a := range requests {
		if err := m.allocate(ctx, pod, h, a); err != nil {
			return nil, a.wrap(err)
		}
	}
	if err := m.save(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pods[h].list(container), nil
}

// pluginRequests returns the requests of a pod for resources of plugins.
func (m *Manager) pluginRequests(pod *manifest.Pod, h allocation.PodVersion) []deviceRequest {
	requests := deviceRequests(&pod.Object.Spec)
	if !pod.Traits.FailsIfRejected || len(requests) == 0 {
		return requests
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(requests, func(a deviceRequest) bool {
		return m.resources[a.resource] == nil && len(m.pods[h].ids(a.container, a.resource)) == 0
	})
}

// checkListed returns an error if no plugin has listed devices of a requested resource since the
// Manager was opened.
func (m *Manager) checkListed(requests []deviceRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range requests {
		if s := m.resources[a.resource]; s == nil || !s.wasListed {
			return a.wrap(errNoPlugin)
		}
	}
	return nil
}

// replaceUnhealthy releases all of a pod's devices of a resource if one of the devices is not
// healthy. The healthy devices are released, too, because containers may share devices.
// replaceUnhealthy ignores a resource if its plugin has not listed its devices yet.
func (m *Manager) replaceUnhealthy(h allocation.PodVersion, requests []deviceRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pod := m.pods[h]
	for _, req := range requests {
		s := m.resources[req.resource]
		isUnhealthy := func(id string) bool { return !s.isHealthy(id) }
		hasUnhealthyDevice := func(a deviceRequest) bool {
			return a.resource == req.resource && slices.ContainsFunc(pod.ids(a.container, a.resource), isUnhealthy)
		}
		if !s.isServed() || !slices.ContainsFunc(requests, hasUnhealthyDevice) {
			continue
		}
		for _, a := range requests {
			if a.resource == req.resource {
				pod.drop(a.container, a.resource)
			}
		}
		m.revision++
		m.signalChange()
	}
}

// PreStart calls Plugin.PreStart for each grant whose devices must be prepared before each start of
// the container.
func (m *Manager) PreStart(ctx context.Context, container string, grants []Grant) error {
	for _, g := range grants {
		if !g.RequiresPreStart {
			continue
		}
		plugin, err := m.plugin(g.Resource)
		if err == nil {
			err = plugin.PreStart(ctx, g.IDs)
		}
		if err != nil {
			return fmt.Errorf("preparing %s for container %s: %w", g.Resource, container, err)
		}
	}
	return nil
}

// beginUse records that the devices of the version h are in use until done is called. It releases
// the devices of other versions of the pod.
func (m *Manager) beginUse(h allocation.PodVersion) (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.usesInProgress[h]++
	for otherVersion := range m.pods {
		if otherVersion.Key == h.Key && otherVersion != h && m.usesInProgress[otherVersion] == 0 {
			delete(m.pods, otherVersion)
			m.revision++
		}
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.usesInProgress[h]--; m.usesInProgress[h] == 0 {
			delete(m.usesInProgress, h)
		}
	}
}

// lockPod reserves the pod for one allocation and waits for other allocations for the pod, because the
// choices of devices for its containers depend on each other.
func (m *Manager) lockPod(ctx context.Context, h allocation.PodVersion) (unlock func(), err error) {
	for {
		m.mu.Lock()
		allocationDone, isAllocating := m.allocationsInProgress[h]
		if !isAllocating {
			finished := make(chan struct{})
			m.allocationsInProgress[h] = finished
			m.mu.Unlock()
			return func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				delete(m.allocationsInProgress, h)
				close(finished)
			}, nil
		}
		m.mu.Unlock()
		select {
		case <-allocationDone:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var errNoPlugin = errors.New("no device plugin is registered for the resource; podd retries")

func (m *Manager) plugin(resource string) (Plugin, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.resources[resource].activePlugin(); p != nil {
		return p.Plugin, nil
	}
	return nil, errNoPlugin
}

// allocate allocates the devices of a request, unless they are already allocated.
func (m *Manager) allocate(ctx context.Context, pod *manifest.Pod, h allocation.PodVersion, a deviceRequest) error {
	g := m.findGrant(h, a)
	if g.Response != nil {
		return nil
	}
	plugin, err := m.plugin(a.resource)
	if err != nil {
		return err
	}
	isNew := len(g.IDs) == 0
	if isNew {
		if g, err = m.reserve(ctx, pod, h, a, plugin); err != nil {
			return err
		}
	}
	response, err := plugin.Allocate(ctx, g.IDs)
	if err == nil {
		err = checkResponse(response)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		if isNew { // keep devices of an earlier call because a container may use them
			m.pods[h].drop(a.container, a.resource)
			m.revision++
		}
		return err
	}
	m.revision++
	g.Response, g.RequiresPreStart = response, plugin.RequiresPreStart()
	m.pods[h].put(a.container, g)
	return nil
}

func (m *Manager) findGrant(h allocation.PodVersion, a deviceRequest) Grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods[h] == nil {
		m.pods[h] = grantMap{}
	}
	return m.pods[h][a.container][a.resource]
}

// reserve chooses devices for a request and adds them to the allocations of the pod. First it
// queries the plugin for its preferred devices, without locking the mutex. It ignores preferred
// devices that are no longer free when the plugin has responded.
func (m *Manager) reserve(ctx context.Context, pod *manifest.Pod, h allocation.PodVersion, a deviceRequest, plugin Plugin) (Grant, error) {
	now := m.availableDevices(pod, h, a)
	if _, err := now.choose(a.n, nil); err != nil {
		return Grant{}, err
	}
	must := now.chooseReusable(a.n)
	preferredIDs, err := plugin.PreferredDevices(ctx, slices.Sorted(slices.Values(slices.Concat(must, now.freeIDs))), must, a.n)
	if err != nil {
		return Grant{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ids, err := m.availableDevicesLocked(pod, h, a).choose(a.n, preferredIDs)
	if err != nil {
		return Grant{}, err
	}
	g := Grant{Resource: a.resource, IDs: ids, NUMA: m.numaNodesLocked(a.resource, ids)}
	m.pods[h].put(a.container, g)
	m.revision++
	return g, nil
}

// availableDevices returns the devices that can be allocated now for a request.
func (m *Manager) availableDevices(pod *manifest.Pod, h allocation.PodVersion, a deviceRequest) availableDevices {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.availableDevicesLocked(pod, h, a)
}

func (m *Manager) availableDevicesLocked(pod *manifest.Pod, h allocation.PodVersion, a deviceRequest) availableDevices {
	s := m.resources[a.resource]
	reusableIDs := reusableDevices(&pod.Object.Spec, a.container, func(container string) []string { return m.pods[h].ids(container, a.resource) })
	return availableDevices{
		reusableIDs: slices.DeleteFunc(reusableIDs, func(id string) bool { return !s.isHealthy(id) }),
		freeIDs:     m.freeLocked(a.resource),
	}
}
