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
	// maxPodsListedSingly is the maximum number of marked pods that are listed one by one. For more
	// pods, listing all pods is cheaper.
	maxPodsListedSingly = 8
	// statusCallTimeout is how long a pass waits for its status calls. A shim that hangs must not
	// delay the observation of other pods.
	statusCallTimeout = 2 * time.Second
	// maxStatusCalls is the maximum number of concurrent status calls.
	maxStatusCalls = 4
	// A failed status query is repeated after firstRetryDelay. The delay doubles after each
	// failure up to maxRetryDelay.
	firstRetryDelay = 100 * time.Millisecond
	maxRetryDelay   = 10 * time.Second
)

// observeMarked observes the marked pods once. If nothing changed, o.pods stays the same map.
func (o *Observer) observeMarked(ctx context.Context, marked markedPods) (runtime.Snapshot, error) {
	s := runtime.Snapshot{IsComplete: marked.allPods || len(marked.keys) > maxPodsListedSingly || o.hasUnlabelledSandbox(marked.keys)}
	if s.IsComplete {
		o.client.responses.beginRelist()
	}
	s.AsOf = time.Now()
	l, err := o.list(ctx, s.IsComplete, marked.keys)
	if err != nil {
		return s, err
	}
	d := newDraft(&o.opts, o.previousPods(s.IsComplete, marked.keys), o.failedQueries, s.AsOf)
	if err := d.add(l); err != nil {
		return s, err
	}
	if err := o.queryDetails(ctx, d); err != nil {
		return s, err
	}
	pods := d.buildPods()
	o.storeFailedQueries(d, s.IsComplete)
	if !s.IsComplete {
		return o.partialSnapshot(s, marked.keys, pods), nil
	}
	if !hasSameEntries(o.pods, pods) {
		o.pods = pods
	}
	s.Pods = o.pods
	return s, nil
}

// storeFailedQueries stores the failed queries of a pass and marks their pods for the time
// of the next query. The pod of a query in progress is marked when the query returns.
func (o *Observer) storeFailedQueries(d *draft, allPods bool) {
	failedQueries, queriedIDs, now := map[string]failedQuery{}, d.queriedIDs(), time.Now()
	if !allPods {
		maps.Copy(failedQueries, o.failedQueries)
		maps.DeleteFunc(failedQueries, func(id string, _ failedQuery) bool { return queriedIDs[id] })
	}
	for id, key := range d.newFailedQueries {
		failed := failedQuery{key: key, failures: o.failedQueries[id].failures, retryAt: o.failedQueries[id].retryAt}
		if queriedIDs[id] {
			failed.failures++
			failed.retryAt = now.Add(backOff(failed.failures, firstRetryDelay, maxRetryDelay))
		}
		if o.sandboxCalls.hasCall(id) || o.foreignCalls.hasCall(id) || o.containerCalls.hasCall(id) {
			failed.retryAt = time.Time{}
		} else {
			o.marks.markPod(key, max(failed.retryAt.Sub(now), 0))
		}
		failedQueries[id] = failed
	}
	o.failedQueries = failedQueries
	o.sandboxCalls.forget(failedQueries)
	o.foreignCalls.forget(failedQueries)
	o.containerCalls.forget(failedQueries)
}

// partialSnapshot returns s with the observation of the pods in keys, and updates o.pods. foundPods
// contains the observed pods. If foundPods has no entry for a key, the pod does not exist.
func (o *Observer) partialSnapshot(s runtime.Snapshot, keys map[types.NamespacedName]struct{}, foundPods map[types.NamespacedName]*runtime.Pod) runtime.Snapshot {
	s.Pods = make(map[types.NamespacedName]*runtime.Pod, len(keys))
	hasChanged := false
	for key := range keys {
		s.Pods[key] = foundPods[key]
		hasChanged = hasChanged || o.pods[key] != foundPods[key]
	}
	if !hasChanged {
		return s
	}
	// Copy the map, because receivers of earlier snapshots may still read it.
	newPods := maps.Clone(o.pods)
	for key, pod := range s.Pods {
		if pod == nil {
			delete(newPods, key)
		} else {
			newPods[key] = pod
		}
	}
	o.pods = newPods
	return s
}

// hasSameEntries reports whether a is not nil and contains the same pointers as b.
func hasSameEntries(a, b map[types.NamespacedName]*runtime.Pod) bool {
	return a != nil && maps.Equal(a, b)
}

// previousPods returns the previous state of the pods in keys, or of all pods if allPods is true.
func (o *Observer) previousPods(allPods bool, keys map[types.NamespacedName]struct{}) map[types.NamespacedName]*runtime.Pod {
	if allPods {
		return o.pods
	}
	pods := make(map[types.NamespacedName]*runtime.Pod, len(keys))
	for key := range keys {
		if pod := o.pods[key]; pod != nil {
			pods[key] = pod
		}
	}
	return pods
}

// hasUnlabelledSandbox reports whether a pod in keys has a sandbox whose labels do not contain the
// namespace and the name of the pod, because another agent created the sandbox. A list by labels does
// not contain such a sandbox.
func (o *Observer) hasUnlabelledSandbox(keys map[types.NamespacedName]struct{}) bool {
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

// queryDetails queries the fields that the lists do not contain. It returns an error only
// if the runtime is unreachable. Other failed calls are repeated later.
func (o *Observer) queryDetails(ctx context.Context, d *draft) error {
	if len(d.sandboxesToQuery) == 0 && len(d.foreignToQuery) == 0 && len(d.containersToQuery) == 0 {
		return nil
	}
	passCtx, cancel := context.WithTimeout(ctx, statusCallTimeout)
	defer cancel()
	var calls errgroup.Group
	calls.SetLimit(maxStatusCalls)
	for _, s := range d.sandboxesToQuery {
		calls.Go(func() error { return keepIfUnavailable(s.query(ctx, passCtx, o)) })
	}
	for _, c := range d.containersToQuery {
		calls.Go(func() error { return keepIfUnavailable(c.query(ctx, passCtx, o)) })
	}
	// The sandboxes of other agents come last, so that they do not delay podd's own pods.
	for _, s := range d.foreignToQuery {
		calls.Go(func() error { return keepIfUnavailable(s.query(ctx, passCtx, o)) })
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// keepIfUnavailable returns err if it means that the runtime is unreachable. For other errors
// and for timeouts it returns nil.
func keepIfUnavailable(err error) error {
	if errors.Is(err, runtime.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// isSamePod reports whether a is not nil and is equal to b.
func isSamePod(a, b *runtime.Pod) bool { return a != nil && reflect.DeepEqual(a, b) }
