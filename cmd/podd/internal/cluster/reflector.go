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

// watchTime is the minimum timeout of watches; the maximum is twice that, so that nodes
// that started together do not return together. objectWatchTime is longer, because there
// is a watch for each ConfigMap and Secret, which should cost little while nothing
// changes.
const (
	watchTime       = 5 * time.Minute
	objectWatchTime = 30 * time.Minute
)

// shortWatch is the duration below which a watch counts as failed, because a proxy may
// end every watch at once.
const shortWatch = time.Second

var errShortWatch = errors.New("watches end at once")

// errPartialList is the error of an incomplete list, because missing objects would be
// taken for deleted. API servers return complete lists unless a limit is set.
var errPartialList = errors.New("the answer is no whole list; is there a proxy before the API server?")

// maxUncachedWait is the longest wait without a cached object, so that podd recovers soon
// after an outage.
const maxUncachedWait = 4 * time.Second

// object is an API object.
type object interface {
	runtime.Object
	metav1.Object
}

// A snapshot is the state of a set of objects at one time. It is immutable.
type snapshot[T object] struct {
	items map[types.NamespacedName]T
	// lists is the number of lists so far. It increases after interruptions. 0 means that
	// nothing was listed.
	lists int
	// origin is that of the last list, if it was requested.
	origin origin
}

// A reflector keeps a snapshot up to date by list and watch. It must be run once.
type reflector[T object] struct {
	client *client
	// query returns a request for all objects. Its selector must be permitted for watches
	// too.
	query func() *rest.Request
	list  runtime.Object // an empty list of the type
	// origin returns the cluster of the list that was just read; may be nil.
	origin func(context.Context) (origin, error)
	store  snapshotStore[snapshot[T]]
	// watches counts the watches that have begun; may be nil.
	watches  *watchable[int]
	reporter reporter
	part     part
	first    time.Duration // initial wait; 0: firstWait
	// maxWait returns the longest wait; nil: maxUncachedWait.
	maxWait   func() time.Duration
	watchTime time.Duration // minimum duration of watches; 0: watchTime
	now       snapshot[T]   // content of store
}

// A snapshotStore is a watchable, or an implementation that handles each snapshot.
type snapshotStore[T any] interface {
	get() (T, <-chan struct{})
	set(T)
}

// A reporter is a problemReporter, or an implementation that handles errors itself.
type reporter interface {
	report(ctx context.Context, of part, err error)
}

// run lists and watches until ctx is done.
func (f *reflector[T]) run(ctx context.Context) {
	b := backoff{first: f.first}
	f.now, _ = f.store.get()
	for ctx.Err() == nil {
		version, err := f.relist(ctx)
		if err == nil {
			f.reporter.report(ctx, f.part, nil)
		}
		for err == nil {
			began, as := time.Now(), f.client.renewed.Load()
			version, err = f.watch(ctx, version)
			switch {
			case f.client.renewed.Load() != as:
				err = nil // the renewal closed the connection
			case time.Since(began) >= shortWatch:
				b = backoff{first: f.first}
			case err == nil || err == errWatchInterrupted:
				err = f.client.withHost(errShortWatch)
			}
		}
		if err != errWatchInterrupted && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			f.reporter.report(ctx, f.part, err)
		}
		most := maxUncachedWait
		if f.maxWait != nil {
			most = f.maxWait()
		}
		sleep(ctx, spread(b.upTo(most)))
	}
}

// relist publishes a new list and returns its resource version.
func (f *reflector[T]) relist(ctx context.Context) (string, error) {
	l := f.list.DeepCopyObject()
	if err := f.client.do(ctx, f.query(), l); err != nil {
		return "", err
	}
	whole, err := meta.ListAccessor(l)
	if err == nil && (whole.GetResourceVersion() == "" || whole.GetContinue() != "") {
		err = errPartialList
	}
	if err != nil {
		return "", f.client.withHost(err)
	}
	items := map[types.NamespacedName]T{}
	err = meta.EachListItem(l, func(o runtime.Object) error {
		item, ok := o.(T)
		if !ok {
			return fmt.Errorf("a list has an unexpected %T", o)
		}
		items[keyOf(item)] = slim(item)
		return nil
	})
	if err != nil {
		return "", f.client.withHost(err)
	}
	var of origin
	if f.origin != nil {
		if of, err = f.origin(ctx); err != nil {
			return "", err
		}
	}
	f.publish(snapshot[T]{items, f.now.lists + 1, of})
	return whole.GetResourceVersion(), nil
}

// watch applies changes after version and returns the last version. The error is nil at
// the requested end, and errWatchInterrupted at any other.
func (f *reflector[T]) watch(ctx context.Context, version string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := f.client.watch(ctx, cancel, f.query(), version, cmp.Or(f.watchTime, watchTime))
	if err != nil {
		return version, err
	}
	defer w.close()
	if f.watches != nil {
		n, _ := f.watches.get()
		f.watches.set(n + 1)
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
			return version, f.client.withHost(fmt.Errorf("reading what changes: %w", err))
		}
		item, ok := o.(T)
		if !ok {
			return version, f.client.withHost(apierrors.FromObject(o))
		}
		version = item.GetResourceVersion()
		if kind == watch.Bookmark {
			continue
		}
		items := maps.Clone(f.now.items)
		if kind == watch.Deleted {
			delete(items, keyOf(item))
		} else {
			items[keyOf(item)] = slim(item)
		}
		f.publish(snapshot[T]{items, f.now.lists, f.now.origin})
	}
}

func (f *reflector[T]) publish(s snapshot[T]) {
	f.now = s
	f.store.set(s)
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// slim removes fields that podd does not use, to save memory: managed fields are a third
// of a pod, and of a Service only the address and ports are needed.
func slim[T object](o T) T {
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
