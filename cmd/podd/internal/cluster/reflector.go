package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// watchTimeout is the minimum timeout of a watch. The maximum is twice the minimum, so that the
// watches of nodes that started at the same time do not expire at the same time.
// objectWatchTimeout is longer, because a node has a watch for each ConfigMap and Secret, which
// must cost little while nothing changes.
const (
	watchTimeout       = 5 * time.Minute
	objectWatchTimeout = 30 * time.Minute
)

// minWatchDuration is the shortest duration of a successful watch. The reflector retries after a
// shorter watch as after a failure, because a proxy may close every watch immediately.
const minWatchDuration = time.Second

var errShortWatch = errors.New("every watch ends within a second of its start; check whether a proxy in front of the API server closes watches")

// errPartialList is the error of an incomplete list. Such a list must not be used, because podd
// would handle the absent objects as deleted. API servers return complete lists unless the
// request sets a limit.
var errPartialList = errors.New("the response to a list request is not a complete list; check whether a proxy in front of the API server changes responses")

// maxUncachedWait is the longest wait after a failure if no object is cached. It is short, so
// that podd recovers soon after an outage.
const maxUncachedWait = 4 * time.Second

// An object is a Kubernetes API object.
type object interface {
	runtime.Object
	metav1.Object
}

// A snapshot contains the objects of a reflector at one resource version. It is immutable.
type snapshot[T object] struct {
	items map[types.NamespacedName]T
	// listCount is the number of lists that were stored in the reflector's store so far. A new
	// reflector with the same store continues the count. listCount is 0 before the first list.
	listCount int
	// origin is the origin of the cluster that the last list came from. It is zero unless
	// reflector.origin is set.
	origin origin
}

// A reflector lists and watches objects and stores each new snapshot. run must be called once.
type reflector[T object] struct {
	client *client
	// query returns a list request for all objects. The reflector sends the same request as a
	// watch.
	query     func() *rest.Request
	emptyList runtime.Object // an empty list, such as &v1.PodList{}
	// origin returns the origin of the cluster. It is called after each list. It may be nil.
	origin func(context.Context) (origin, error)
	store  snapshotStore[snapshot[T]]
	// watchCount counts the watches that have begun. It may be nil.
	watchCount  *watchable[int]
	reporter    reporter
	part        connectionPart
	initialWait time.Duration // wait after the first failure; 0 means firstWait
	// maxWait returns the longest wait after a failure. If maxWait is nil, the longest wait is
	// maxUncachedWait.
	maxWait      func() time.Duration
	watchTimeout time.Duration // minimum timeout of a watch; 0 means watchTimeout
	current      snapshot[T]   // the last snapshot in store
}

// A snapshotStore stores the snapshots of a reflector. A watchable is a snapshotStore. A reflector
// calls get once, when it starts, and continues from the returned snapshot. It does not use the
// channel that get returns.
type snapshotStore[T any] interface {
	get() (snapshot T, changed <-chan struct{})
	set(T)
}

// A reporter receives the result of each attempt of a part; err is nil after a success. A
// problemReporter is a reporter.
type reporter interface {
	report(ctx context.Context, p connectionPart, err error)
}

// run lists and watches until ctx is done.
func (f *reflector[T]) run(ctx context.Context) {
	b := backoff{initialWait: f.initialWait}
	f.current, _ = f.store.get()
	for ctx.Err() == nil {
		version, err := f.relist(ctx)
		if err == nil {
			f.reporter.report(ctx, f.part, nil)
		}
		for err == nil {
			startTime, renewals := time.Now(), f.client.renewalCount.Load()
			version, err = f.watch(ctx, version)
			switch {
			case f.client.renewalCount.Load() != renewals:
				err = nil // not a failure, because a renewal closed the connection
			case time.Since(startTime) >= minWatchDuration:
				b = backoff{initialWait: f.initialWait}
			case err == nil || err == errWatchInterrupted:
				err = f.client.withHost(errShortWatch)
			}
		}
		if err != errWatchInterrupted && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			f.reporter.report(ctx, f.part, err)
		}
		limit := maxUncachedWait
		if f.maxWait != nil {
			limit = f.maxWait()
		}
		sleep(ctx, withJitter(b.nextUpTo(limit)))
	}
}

// relist lists the objects, publishes a snapshot of them and returns the resource version of the
// list.
func (f *reflector[T]) relist(ctx context.Context) (string, error) {
	l := f.emptyList.DeepCopyObject()
	if err := f.client.do(ctx, f.query(), l); err != nil {
		return "", err
	}
	list, err := meta.ListAccessor(l)
	if err == nil && (list.GetResourceVersion() == "" || list.GetContinue() != "") {
		err = errPartialList
	}
	if err != nil {
		return "", f.client.withHost(err)
	}
	items := map[types.NamespacedName]T{}
	err = meta.EachListItem(l, func(o runtime.Object) error {
		item, ok := o.(T)
		if !ok {
			return fmt.Errorf("the response to a list request contains an unexpected %T", o)
		}
		items[objectKey(item)] = dropUnusedFields(item)
		return nil
	})
	if err != nil {
		return "", f.client.withHost(err)
	}
	var listOrigin origin
	if f.origin != nil {
		if listOrigin, err = f.origin(ctx); err != nil {
			return "", err
		}
	}
	f.publish(snapshot[T]{items, f.current.listCount + 1, listOrigin})
	return list.GetResourceVersion(), nil
}

// watch publishes the changes after the resource version and returns the last resource version. The
// error is nil if the watch ended at the requested time, and errWatchInterrupted if it ended
// earlier or did not end in time.
func (f *reflector[T]) watch(ctx context.Context, version string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := f.client.watch(ctx, cancel, f.query(), version, cmp.Or(f.watchTimeout, watchTimeout))
	if err != nil {
		return version, err
	}
	defer w.close()
	if f.watchCount != nil {
		n, _ := f.watchCount.get()
		f.watchCount.set(n + 1)
	}
	for {
		kind, o, err := w.next()
		switch {
		case err != nil && context.Cause(ctx) == errWatchOverdue:
			return version, errWatchInterrupted
		case err == io.EOF:
			return version, ctx.Err()
		case err == errWatchInterrupted:
			return version, err
		case err != nil:
			return version, f.client.withHost(fmt.Errorf("reading watch events: %w", err))
		}
		item, ok := o.(T)
		if !ok {
			return version, f.client.withHost(apierrors.FromObject(o))
		}
		version = item.GetResourceVersion()
		if kind == watch.Bookmark {
			continue
		}
		items := maps.Clone(f.current.items)
		if kind == watch.Deleted {
			delete(items, objectKey(item))
		} else {
			items[objectKey(item)] = dropUnusedFields(item)
		}
		f.publish(snapshot[T]{items, f.current.listCount, f.current.origin})
	}
}

// publish sets current and stores the snapshot in store.
func (f *reflector[T]) publish(s snapshot[T]) {
	f.current = s
	f.store.set(s)
}

// objectKey returns the key of an object.
func objectKey(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// dropUnusedFields removes from o the fields that podd does not use, to save memory, and returns o.
// Managed fields take a third of the memory of a pod. podd uses only the address and the ports of a
// Service.
func dropUnusedFields[T object](o T) T {
	if s, ok := any(o).(*v1.Service); ok {
		ports := make([]v1.ServicePort, 0, len(s.Spec.Ports))
		for _, p := range s.Spec.Ports {
			ports = append(ports, v1.ServicePort{Name: p.Name, Protocol: p.Protocol, Port: p.Port})
		}
		s.ObjectMeta = metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, ResourceVersion: s.ResourceVersion}
		s.Spec, s.Status = v1.ServiceSpec{ClusterIP: s.Spec.ClusterIP, Ports: ports}, v1.ServiceStatus{}
	}
	o.SetManagedFields(nil)
	return o
}
