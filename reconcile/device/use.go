package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"podd/manifest"
)

// Use gives a pod the devices that its containers ask for, unless it has them, and
// returns what a container that is about to be made has; for "", the sandbox,
// nothing; then nothing of the pod runs, and devices that are ill or gone are
// replaced. Whatever an earlier version of the pod has is free by that: it has ended.
// The devices stay the pod's until done is called, and then for as long as Hold
// says. The error names the container, the resource and what to do.
func (l *Ledger) Use(ctx context.Context, pod *manifest.Pod, container string) (grants []Grant, done func(), err error) {
	asks := asksOf(&pod.Spec.Spec)
	if len(asks) == 0 {
		return nil, func() {}, nil
	}
	h := HolderOf(pod)
	done = l.begin(h)
	grants, err = l.use(ctx, pod, h, asks, container)
	if err != nil {
		done()
		return nil, nil, err
	}
	return grants, done, nil
}

func (l *Ledger) use(ctx context.Context, pod *manifest.Pod, h Holder, asks []ask, container string) ([]Grant, error) {
	over, err := l.turn(ctx, h)
	if err != nil {
		return nil, err
	}
	defer over()
	if container == "" {
		l.replaceIll(h, asks)
	}
	for _, a := range asks {
		if err := l.allocate(ctx, pod, h, a); err != nil {
			return nil, fmt.Errorf("giving container %s %d of %s: %w", a.container, a.n, a.resource, err)
		}
	}
	if err := l.save(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pods[h].of(container), nil
}

// replaceIll takes a pod's devices of a resource when one of them is not healthy:
// its containers may share them, and all are given again. A plugin that has listed
// none yet tells nothing.
func (l *Ledger) replaceIll(h Holder, asks []ask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod := l.pods[h]
	for _, one := range asks {
		s := l.resources[one.resource]
		ill := func(id string) bool { return !s.devices[id].Healthy }
		has := func(a ask) bool {
			return a.resource == one.resource && slices.ContainsFunc(pod.ids(a.container, a.resource), ill)
		}
		if s == nil || !s.listed || !slices.ContainsFunc(asks, has) {
			continue
		}
		for _, a := range asks {
			if a.resource == one.resource {
				pod.drop(a.container, a.resource)
			}
		}
		l.revision++
		l.tell()
	}
}

// PreStart has the plugins of a container's devices make them ready, as often as
// it is started.
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
			return fmt.Errorf("making %s ready for container %s: %w", g.Resource, container, err)
		}
	}
	return nil
}

// begin notes that a start is under way, and that what other versions of the pod
// had is free.
func (l *Ledger) begin(h Holder) (done func()) {
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

// turn waits until no other container of the pod is being served: their choices
// depend on each other.
func (l *Ledger) turn(ctx context.Context, h Holder) (over func(), err error) {
	for {
		l.mu.Lock()
		ahead, busy := l.turns[h]
		if !busy {
			mine := make(chan struct{})
			l.turns[h] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.turns, h)
				close(mine)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-ahead:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var errNoPlugin = errors.New("no device plugin serves it now; it is tried again later")

func (l *Ledger) plugin(resource string) (Plugin, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.resources[resource]; s != nil {
		return s.plugin, nil
	}
	return nil, errNoPlugin
}

// allocate does one ask, unless that was done.
func (l *Ledger) allocate(ctx context.Context, pod *manifest.Pod, h Holder, a ask) error {
	g := l.granted(h, a)
	if g.Response != nil {
		return nil
	}
	plugin, err := l.plugin(a.resource)
	if err != nil {
		return err
	}
	chosen := len(g.IDs) == 0
	if chosen {
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
		if chosen { // what it had before may be in use: a container may run with it
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

func (l *Ledger) granted(h Holder, a ask) Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pods[h] == nil {
		l.pods[h] = given{}
	}
	return l.pods[h][a.container][a.resource]
}

// reserve chooses devices and notes them as the pod's. What the plugin would like
// is asked before that, and counts for as much as is still free then.
func (l *Ledger) reserve(ctx context.Context, pod *manifest.Pod, h Holder, a ask, plugin Plugin) (Grant, error) {
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
	g := Grant{Resource: a.resource, IDs: ids, NUMA: l.nearLocked(a.resource, ids)}
	l.pods[h].put(a.container, g)
	l.revision++
	return g, nil
}

func (l *Ledger) offer(pod *manifest.Pod, h Holder, a ask) offer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.offerLocked(pod, h, a)
}

func (l *Ledger) offerLocked(pod *manifest.Pod, h Holder, a ask) offer {
	s := l.resources[a.resource]
	healthy := func(id string) bool { return s != nil && s.devices[id].Healthy }
	again := reusable(&pod.Spec.Spec, a.container, func(container string) []string { return l.pods[h].ids(container, a.resource) })
	return offer{
		reusable: slices.DeleteFunc(again, func(id string) bool { return !healthy(id) }),
		free:     l.freeLocked(a.resource),
	}
}
