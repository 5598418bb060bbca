package apiserver

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

	"podd/cmd/podd/internal/cluster/backoff"
	"podd/cmd/podd/internal/cluster/watchable"
)

// WatchTimeout is the minimum timeout of a watch. The maximum is twice the minimum, so that the
// watches of nodes that started at the same time do not expire at the same time.
// ObjectWatchTimeout is longer, because a node has a watch for each ConfigMap and Secret, which
// must cost little while nothing changes.
const (
	WatchTimeout       = 5 * time.Minute
	ObjectWatchTimeout = 30 * time.Minute
)

// minWatchDuration is the shortest duration of a successful watch. The reflector retries after a
// shorter watch as after a failure, because a proxy may close every watch immediately.
const minWatchDuration = time.Second

var errShortWatch = errors.New("every watch ends within a second of its start; check whether a proxy in front of the API server closes watches")

// errPartialList is the error of an incomplete list. Such a list must not be used, because podd
// would handle the absent objects as deleted. API servers return complete lists unless the
// request sets a limit.
var errPartialList = errors.New("the response to a list request is not a complete list; check whether a proxy in front of the API server changes responses")

// MaxUncachedWait is the longest wait after a failure if no object is cached. It is short, so
// that podd recovers soon after an outage.
const MaxUncachedWait = 4 * time.Second

// MaxCachedWait is the longest wait after a failure if the object is cached. It is longer than
// MaxUncachedWait, because a node uses many objects, and their requests share a rate limit with
// the requests for pods.
const MaxCachedWait = 30 * time.Second

// An Object is a Kubernetes API object.
type Object interface {
	runtime.Object
	metav1.Object
}

// A Snapshot contains the objects of a reflector at one resource version. It is immutable.
type Snapshot[T Object] struct {
	Items map[types.NamespacedName]T
	// ListCount is the number of lists so far. A Reflector continues the count of Reflector.Last.
	// ListCount is 0 before the first list.
	ListCount int
	// Origin is the origin of the cluster that the last list came from. It is zero unless
	// Reflector.Origin is set.
	Origin Origin
}

// A Store contains the last snapshot of a Reflector and notifies its readers of changes. The zero Store
// contains the zero Snapshot. It is safe for concurrent use.
type Store[T Object] struct {
	// snapshot is a pointer, because the binary then contains the code of watchable.Value only once for
	// all types of objects.
	snapshot watchable.Value[*Snapshot[T]]
}

// Get returns the snapshot, and a channel that the next call of Set closes. Until then, Get returns the
// same channel.
func (s *Store[T]) Get() (snapshot Snapshot[T], changed <-chan struct{}) {
	p, changed := s.snapshot.Get()
	if p != nil {
		snapshot = *p
	}
	return snapshot, changed
}

// Find returns the object with a key in the snapshot, or nil if there is none. changed is closed by the
// next call of Set.
func (s *Store[T]) Find(key types.NamespacedName) (o T, changed <-chan struct{}) {
	snapshot, changed := s.Get()
	return snapshot.Items[key], changed
}

// Set stores a snapshot and closes the channel that Get has returned.
func (s *Store[T]) Set(snapshot Snapshot[T]) { s.snapshot.Set(&snapshot) }

// A Reflector lists and watches objects and publishes each new snapshot. Run must be called once.
// All fields without a comment that allows nil or 0 are required.
type Reflector[T Object] struct {
	Client *Client
	// Query returns a list request for all objects. The reflector sends the same request as a
	// watch.
	Query     func() *rest.Request
	EmptyList runtime.Object // an empty list, such as &v1.PodList{}
	// Origin returns the origin of the cluster. It is called after each list. It may be nil.
	Origin func(context.Context) (Origin, error)
	// Last is the last snapshot of an earlier Reflector of the same objects. The Reflector continues its
	// count. Last is zero if there is no earlier Reflector.
	Last Snapshot[T]
	// Publish is called with each new snapshot. It may block.
	Publish func(Snapshot[T])
	// WatchCount counts the watches that have begun. It may be nil.
	WatchCount *watchable.Value[int]
	// Report receives the result of each attempt; err is nil after a success. Report may block. It is not
	// called after a watch that was interrupted or whose resource version has expired, because the
	// reflector then lists the objects again.
	Report      func(ctx context.Context, err error)
	InitialWait time.Duration // wait after the first failure; 0 means backoff.FirstWait
	// MaxWait returns the longest wait after a failure. If MaxWait is nil, the longest wait is
	// MaxUncachedWait.
	MaxWait      func() time.Duration
	WatchTimeout time.Duration // minimum timeout of a watch; 0 means the constant WatchTimeout
	current      Snapshot[T]   // the last published snapshot
}

// Run lists and watches until ctx is done.
func (f *Reflector[T]) Run(ctx context.Context) {
	b := backoff.Backoff{InitialWait: f.InitialWait}
	f.current = f.Last
	for ctx.Err() == nil {
		version, err := f.relist(ctx)
		if err == nil {
			f.Report(ctx, nil)
		}
		for err == nil {
			startTime, renewals := time.Now(), f.Client.renewalCount.Load()
			version, err = f.watch(ctx, version)
			switch {
			case f.Client.renewalCount.Load() != renewals:
				err = nil // not a failure, because a renewal closed the connection
			case time.Since(startTime) >= minWatchDuration:
				b = backoff.Backoff{InitialWait: f.InitialWait}
			case err == nil || err == errWatchInterrupted:
				err = f.Client.WithHost(errShortWatch)
			}
		}
		if err != errWatchInterrupted && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			f.Report(ctx, err)
		}
		limit := MaxUncachedWait
		if f.MaxWait != nil {
			limit = f.MaxWait()
		}
		backoff.Sleep(ctx, backoff.WithJitter(b.NextUpTo(limit)))
	}
}

// relist lists the objects, publishes a snapshot of them and returns the resource version of the
// list.
func (f *Reflector[T]) relist(ctx context.Context) (string, error) {
	l := f.EmptyList.DeepCopyObject()
	if err := f.Client.Do(ctx, f.Query(), l); err != nil {
		return "", err
	}
	list, err := meta.ListAccessor(l)
	if err == nil && (list.GetResourceVersion() == "" || list.GetContinue() != "") {
		err = errPartialList
	}
	if err != nil {
		return "", f.Client.WithHost(err)
	}
	items := map[types.NamespacedName]T{}
	err = meta.EachListItem(l, func(o runtime.Object) error {
		item, ok := o.(T)
		if !ok {
			return fmt.Errorf("the response to a list request contains an unexpected %T", o)
		}
		items[ObjectKey(item)] = DropUnusedFields(item)
		return nil
	})
	if err != nil {
		return "", f.Client.WithHost(err)
	}
	var listOrigin Origin
	if f.Origin != nil {
		if listOrigin, err = f.Origin(ctx); err != nil {
			return "", err
		}
	}
	f.publish(Snapshot[T]{items, f.current.ListCount + 1, listOrigin})
	return list.GetResourceVersion(), nil
}

// watch publishes the changes after the resource version and returns the last resource version. The
// error is nil if the watch ended at the requested time, and errWatchInterrupted if it ended
// earlier or did not end in time.
func (f *Reflector[T]) watch(ctx context.Context, version string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := f.Client.Watch(ctx, cancel, f.Query(), version, cmp.Or(f.WatchTimeout, WatchTimeout))
	if err != nil {
		return version, err
	}
	defer w.Close()
	if f.WatchCount != nil {
		n, _ := f.WatchCount.Get()
		f.WatchCount.Set(n + 1)
	}
	for {
		kind, o, err := w.Next()
		switch {
		case err != nil && context.Cause(ctx) == errWatchOverdue:
			return version, errWatchInterrupted
		case err == io.EOF:
			return version, ctx.Err()
		case err == errWatchInterrupted:
			return version, err
		case err != nil:
			return version, f.Client.WithHost(fmt.Errorf("reading watch events: %w", err))
		}
		item, ok := o.(T)
		if !ok {
			return version, f.Client.WithHost(apierrors.FromObject(o))
		}
		version = item.GetResourceVersion()
		if kind == watch.Bookmark {
			continue
		}
		items := maps.Clone(f.current.Items)
		if kind == watch.Deleted {
			delete(items, ObjectKey(item))
		} else {
			items[ObjectKey(item)] = DropUnusedFields(item)
		}
		f.publish(Snapshot[T]{items, f.current.ListCount, f.current.Origin})
	}
}

// publish sets current and publishes the snapshot.
func (f *Reflector[T]) publish(s Snapshot[T]) {
	f.current = s
	f.Publish(s)
}

// ObjectKey returns the key of an object.
func ObjectKey(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// DropUnusedFields removes from o the fields that podd does not use, to save memory, and returns o.
// Managed fields take a third of the memory of a pod. podd uses only the address and the ports of a
// Service.
func DropUnusedFields[T Object](o T) T {
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
