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

// watchTime is how long the API server is asked to keep a watch, and up to twice
// that: nodes that started together do not come back together. Watches of what pods use
// last longer: there is one for each ConfigMap and Secret, and they are to cost little
// while nothing happens.
const (
	watchTime       = 5 * time.Minute
	objectWatchTime = 30 * time.Minute
)

// shortWatch is a watch so short that the next waits: a proxy that ends each at
// once is no reason to ask without end.
const shortWatch = time.Second

var errShortWatch = errors.New("watches end at once")

// errPart is that an answer is not all that there is, of which what it lacks would
// be taken to be gone. No API server answers so when it is asked for all.
var errPart = errors.New("the answer is no whole list; is there a proxy before the API server?")

// mostBlind is the longest wait of who does not know what the cluster has: it is
// to be right soon after the cluster is back.
const mostBlind = 4 * time.Second

// object is what an API server has.
type object interface {
	runtime.Object
	metav1.Object
}

// sighting is what the cluster has of something, at one moment. Immutable.
type sighting[T object] struct {
	items map[types.NamespacedName]T
	// anew grows with each list: the cluster may have been away. 0: nobody looked
	// yet.
	anew int
	// origin is that of the last list, where it was asked for.
	origin origin
}

// follower keeps a sighting the newest. One goroutine runs it, once.
type follower[T object] struct {
	client *client
	// query makes a request for all of them. What it selects by must be allowed to
	// watch, too.
	query func() *rest.Request
	list  runtime.Object // an empty one of their lists
	// origin asks whose a list is that was just read; nil: nobody needs to know.
	origin func(context.Context) (origin, error)
	seen   place[sighting[T]]
	// watches counts those that began; nil: nobody needs to know.
	watches *latest[int]
	say     reporter
	of      part
	first   time.Duration // of the waits; 0: firstWait
	// most is the longest of them by now; nil: mostBlind.
	most func() time.Duration
	last time.Duration // of each watch, and up to twice that; 0: watchTime
	now  sighting[T]   // what seen has
}

// place is a latest, or who takes what one would have.
type place[T any] interface {
	get() (T, <-chan struct{})
	set(T)
}

// reporter is a speaker, or who hears instead how attempts end.
type reporter interface {
	report(ctx context.Context, of part, err error)
}

// run does so until ctx is done.
func (f *follower[T]) run(ctx context.Context) {
	b := backoff{first: f.first}
	f.now, _ = f.seen.get()
	for ctx.Err() == nil {
		version, err := f.look(ctx)
		if err == nil {
			f.say.report(ctx, f.of, nil)
		}
		for err == nil {
			began, as := time.Now(), f.client.renewed.Load()
			version, err = f.watch(ctx, version)
			switch {
			case f.client.renewed.Load() != as:
				err = nil // that cut it
			case time.Since(began) >= shortWatch:
				b = backoff{first: f.first}
			case err == nil || err == errCut:
				err = f.client.at(errShortWatch)
			}
		}
		if err != errCut && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			f.say.report(ctx, f.of, err)
		}
		most := mostBlind
		if f.most != nil {
			most = f.most()
		}
		sleep(ctx, spread(b.upTo(most)))
	}
}

// look takes all that there is and returns the version to watch from.
func (f *follower[T]) look(ctx context.Context) (string, error) {
	l := f.list.DeepCopyObject()
	if err := f.client.into(ctx, f.query(), l); err != nil {
		return "", err
	}
	whole, err := meta.ListAccessor(l)
	if err == nil && (whole.GetResourceVersion() == "" || whole.GetContinue() != "") {
		err = errPart
	}
	if err != nil {
		return "", f.client.at(err)
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
		return "", f.client.at(err)
	}
	var of origin
	if f.origin != nil {
		if of, err = f.origin(ctx); err != nil {
			return "", err
		}
	}
	f.tell(sighting[T]{items, f.now.anew + 1, of})
	return whole.GetResourceVersion(), nil
}

// watch takes changes after a version and returns the last, with nil when the
// server ends it as asked, and errCut when it ends otherwise.
func (f *follower[T]) watch(ctx context.Context, version string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := f.client.watch(ctx, cancel, f.query(), version, cmp.Or(f.last, watchTime))
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
		case err != nil && context.Cause(ctx) == errOver:
			return version, errCut
		case err == io.EOF:
			return version, ctx.Err()
		case err == errCut:
			return version, err
		case err != nil:
			return version, f.client.at(fmt.Errorf("reading what changes: %w", err))
		}
		item, ok := o.(T)
		if !ok {
			return version, f.client.at(apierrors.FromObject(o))
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
		f.tell(sighting[T]{items, f.now.anew, f.now.origin})
	}
}

func (f *follower[T]) tell(s sighting[T]) {
	f.now = s
	f.seen.set(s)
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// slim drops what nobody here asks for: whose the fields are is a third of a pod,
// and of a Service only its address and ports count, of which a cluster has many.
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
