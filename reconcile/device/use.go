package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"podd/manifest"
	"podd/reconcile/device/allocation"
)

// Use allocates the devices that the containers of a pod request, unless it has them, and
// returns the grants of the container that is about to be created. For the sandbox,
// container is "" and there are no grants; because no container of the pod runs then, Use
// replaces devices that are unhealthy or no longer listed.
//
// The devices of an earlier version of the pod are released, because it has been stopped.
// The pod keeps its devices until done is called, and then until Hold releases them. The
// error names the container and the resource.
func (l *Ledger) Use(ctx context.Context, pod *manifest.Pod, container string) (grants []Grant, done func(), err error) {
	requests := deviceRequests(&pod.Spec.Spec)
	if len(requests) == 0 {
		return nil, func() {}, nil
	}
	h := versionOf(pod)
	done = l.beginUse(h)
	grants, err = l.use(ctx, pod, h, requests, container)
	if err != nil {
		done()
		return nil, nil, err
	}
	return grants, done, nil
}

func (l *Ledger) use(ctx context.Context, pod *manifest.Pod, h allocation.PodVersion, requests []deviceRequest, container string) ([]Grant, error) {
	unlock, err := l.lockPod(ctx, h)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if container == "" {
		l.replaceUnhealthy(h, requests)
	}
	for _, a := range requests {
		if err := l.allocate(ctx, pod, h, a); err != nil {
			return nil, fmt.Errorf("allocating %d of %s for container %s: %w", a.n, a.resource, a.container, err)
		}
	}
	if err := l.save(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pods[h].list(container), nil
}

// replaceUnhealthy releases all of a pod's devices of a resource if one of them is not
// healthy. It releases all because containers may share devices. It does nothing for a
// resource until its plugin has listed its devices.
func (l *Ledger) replaceUnhealthy(h allocation.PodVersion, requests []deviceRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod := l.pods[h]
	for _, req := range requests {
		s := l.resources[req.resource]
		unhealthy := func(id string) bool { return !s.devices[id].Healthy }
		has := func(a deviceRequest) bool {
			return a.resource == req.resource && slices.ContainsFunc(pod.ids(a.container, a.resource), unhealthy)
		}
		if s == nil || !s.listed || !slices.ContainsFunc(requests, has) {
			continue
		}
		for _, a := range requests {
			if a.resource == req.resource {
				pod.drop(a.container, a.resource)
			}
		}
		l.revision++
		l.notify()
	}
}

// PreStart calls the plugins of a container's devices that must prepare them before each
// start.
func (l *Ledger) PreStart(ctx context.Context, container string, grants []Grant) error {
	for _, g := range grants {
		if !g.Prepares {
			continue
		}
		plugin, err := l.plugin(g.Resource)
		if err == nil {
			err = plugin.PreStart(ctx, g.IDs)
		}
		if err != nil {
			return fmt.Errorf("preparing %s for container %s: %w", g.Resource, container, err)
		}
	}
	return nil
}

// beginUse records that a start is in progress and releases the devices of other
// versions of the pod.
func (l *Ledger) beginUse(h allocation.PodVersion) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.using[h]++
	for other := range l.pods {
		if other.Key == h.Key && other != h && l.using[other] == 0 {
			delete(l.pods, other)
			l.revision++
		}
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.using[h]--; l.using[h] == 0 {
			delete(l.using, h)
		}
	}
}

// lockPod waits until no other allocation for the pod is in progress, because the choices
// for its containers depend on each other.
func (l *Ledger) lockPod(ctx context.Context, h allocation.PodVersion) (unlock func(), err error) {
	for {
		l.mu.Lock()
		current, busy := l.allocating[h]
		if !busy {
			finished := make(chan struct{})
			l.allocating[h] = finished
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.allocating, h)
				close(finished)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-current:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var errNoPlugin = errors.New("no device plugin is registered for it; podd retries")

func (l *Ledger) plugin(resource string) (Plugin, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.resources[resource]; s != nil {
		return s.plugin, nil
	}
	return nil, errNoPlugin
}

// allocate allocates the devices of a request unless they are allocated.
func (l *Ledger) allocate(ctx context.Context, pod *manifest.Pod, h allocation.PodVersion, a deviceRequest) error {
	g := l.grantOf(h, a)
	if g.Response != nil {
		return nil
	}
	plugin, err := l.plugin(a.resource)
	if err != nil {
		return err
	}
	isNew := len(g.IDs) == 0
	if isNew {
		if g, err = l.reserve(ctx, pod, h, a, plugin); err != nil {
			return err
		}
	}
	response, err := plugin.Allocate(ctx, g.IDs)
	if err == nil {
		err = check(response)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if isNew { // keep devices of an earlier call because a container may use them
			l.pods[h].drop(a.container, a.resource)
			l.revision++
		}
		return err
	}
	l.revision++
	g.Response, g.Prepares = response, plugin.Prepares()
	l.pods[h].put(a.container, g)
	return nil
}

func (l *Ledger) grantOf(h allocation.PodVersion, a deviceRequest) Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pods[h] == nil {
		l.pods[h] = grantMap{}
	}
	return l.pods[h][a.container][a.resource]
}

// reserve chooses devices and adds them to the pod. It queries the preference of the
// plugin first, without the mutex; of the preferred devices, those that are no longer
// free are ignored.
func (l *Ledger) reserve(ctx context.Context, pod *manifest.Pod, h allocation.PodVersion, a deviceRequest, plugin Plugin) (Grant, error) {
	now := l.offer(pod, h, a)
	if _, err := now.choose(a.n, nil); err != nil {
		return Grant{}, err
	}
	must := now.reused(a.n)
	preferred, err := plugin.Preferred(ctx, slices.Sorted(slices.Values(slices.Concat(must, now.free))), must, a.n)
	if err != nil {
		return Grant{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ids, err := l.offerLocked(pod, h, a).choose(a.n, preferred)
	if err != nil {
		return Grant{}, err
	}
	g := Grant{Resource: a.resource, IDs: ids, NUMA: l.numaLocked(a.resource, ids)}
	l.pods[h].put(a.container, g)
	l.revision++
	return g, nil
}

// offer returns the devices that can be allocated for a request now.
func (l *Ledger) offer(pod *manifest.Pod, h allocation.PodVersion, a deviceRequest) offer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.offerLocked(pod, h, a)
}

func (l *Ledger) offerLocked(pod *manifest.Pod, h allocation.PodVersion, a deviceRequest) offer {
	s := l.resources[a.resource]
	healthy := func(id string) bool { return s != nil && s.devices[id].Healthy }
	earlier := reusable(&pod.Spec.Spec, a.container, func(container string) []string { return l.pods[h].ids(container, a.resource) })
	return offer{
		reusable: slices.DeleteFunc(earlier, func(id string) bool { return !healthy(id) }),
		free:     l.freeLocked(a.resource),
	}
}
