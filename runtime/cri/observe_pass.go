package cri

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

const (
	// fewPods is how many dirty pods are listed one by one; for more, two lists of
	// everything are cheaper than two for each.
	fewPods = 8
	// detailTime is how long a pass waits for its status calls: a shim that hangs must not
	// delay the other pods.
	detailTime = 2 * time.Second
	// detailCalls is how many status calls run concurrently.
	detailCalls = 4
	// A status is queried again after firstRetry, and then after twice as long each time,
	// up to maxRetry.
	firstRetry = 100 * time.Millisecond
	maxRetry   = 10 * time.Second
)

// pass observes the marked pods once. If nothing changed, o.pods stays the same map.
func (o *Observer) pass(ctx context.Context, marked dirty) (runtime.Snapshot, error) {
	s := runtime.Snapshot{Whole: marked.whole || len(marked.keys) > fewPods || o.unlabelled(marked.keys)}
	if s.Whole {
		o.client.responses.relist()
	}
	s.AsOf = time.Now()
	l, err := o.list(ctx, s.Whole, marked.keys)
	if err != nil {
		return s, err
	}
	d := newDraft(&o.opts, o.prior(s.Whole, marked.keys), o.doubts, s.AsOf)
	if err := d.add(l); err != nil {
		return s, err
	}
	if err := o.fill(ctx, d); err != nil {
		return s, err
	}
	found := d.finish()
	o.remember(d, s.Whole)
	if !s.Whole {
		return o.part(s, marked.keys, found), nil
	}
	if !sameEntries(o.pods, found) {
		o.pods = found
	}
	s.Pods = o.pods
	return s, nil
}

// remember stores the objects with failed queries in a pass, and marks their pods for the
// time of the next query. A query in progress marks its pod when it ends.
func (o *Observer) remember(d *draft, whole bool) {
	doubts, queried, now := map[string]doubt{}, d.queried(), time.Now()
	if !whole {
		maps.Copy(doubts, o.doubts)
		maps.DeleteFunc(doubts, func(id string, _ doubt) bool { return queried[id] })
	}
	for id, key := range d.newDoubts {
		next := doubt{key: key, tries: o.doubts[id].tries, retryAt: o.doubts[id].retryAt}
		if queried[id] {
			next.tries++
			next.retryAt = now.Add(backOff(next.tries, firstRetry, maxRetry))
		}
		if o.sandboxes.inProgress(id) || o.containers.inProgress(id) {
			next.retryAt = time.Time{}
		} else {
			o.marks.pod(key, max(next.retryAt.Sub(now), 0))
		}
		doubts[id] = next
	}
	o.doubts = doubts
	o.sandboxes.forget(doubts)
	o.containers.forget(doubts)
}

// part returns the snapshot of some pods; a nil entry is a pod that does not exist.
func (o *Observer) part(s runtime.Snapshot, keys map[types.NamespacedName]struct{}, found map[types.NamespacedName]*runtime.Pod) runtime.Snapshot {
	s.Pods = make(map[types.NamespacedName]*runtime.Pod, len(keys))
	changed := false
	for key := range keys {
		s.Pods[key] = found[key]
		changed = changed || o.pods[key] != found[key]
	}
	if !changed {
		return s
	}
	// The receiver of the last map may still read it.
	next := maps.Clone(o.pods)
	for key, pod := range s.Pods {
		if pod == nil {
			delete(next, key)
		} else {
			next[key] = pod
		}
	}
	o.pods = next
	return s
}

func sameEntries(a, b map[types.NamespacedName]*runtime.Pod) bool {
	return a != nil && maps.Equal(a, b)
}

// prior returns the previous state of the pods to observe.
func (o *Observer) prior(whole bool, keys map[types.NamespacedName]struct{}) map[types.NamespacedName]*runtime.Pod {
	if whole {
		return o.pods
	}
	some := make(map[types.NamespacedName]*runtime.Pod, len(keys))
	for key := range keys {
		if pod := o.pods[key]; pod != nil {
			some[key] = pod
		}
	}
	return some
}

// unlabelled reports whether a pod to observe has a sandbox without the labels by which the
// runtime would list it, because another agent created it.
func (o *Observer) unlabelled(keys map[types.NamespacedName]struct{}) bool {
	for key := range keys {
		pod := o.pods[key]
		if pod == nil {
			continue
		}
		for i := range pod.Incarnations {
			in := &pod.Incarnations[i]
			if in.Foreign && (in.Labels[runtime.LabelPodName] != key.Name || in.Labels[runtime.LabelPodNamespace] != key.Namespace) {
				return true
			}
		}
	}
	return false
}

// fill queries what the lists do not contain. It returns an error only if the runtime is
// unreachable; other failed calls are retried later.
func (o *Observer) fill(ctx context.Context, d *draft) error {
	if len(d.sandboxes) == 0 && len(d.containers) == 0 {
		return nil
	}
	pass, cancel := context.WithTimeout(ctx, detailTime)
	defer cancel()
	var calls errgroup.Group
	calls.SetLimit(detailCalls)
	for _, s := range d.sandboxes {
		calls.Go(func() error { return onlyUnavailable(s.query(ctx, pass, o)) })
	}
	for _, c := range d.containers {
		calls.Go(func() error { return onlyUnavailable(c.query(ctx, pass, o)) })
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// onlyUnavailable returns err if the runtime was unreachable, and nil for other errors and
// timeouts.
func onlyUnavailable(err error) error {
	if errors.Is(err, runtime.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func samePod(a, b *runtime.Pod) bool { return a != nil && reflect.DeepEqual(a, b) }
