package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"podd/manifest"
)

// firstLookupWait is the initial wait after a failure. It is short, because a pod waits for
// the object, and because lookups may fail within bindingLag.
const firstLookupWait = 20 * time.Millisecond

// bindingLag is how long the authorizer of the API server may take until it has processed the
// binding of a pod to this node. Until then it forbids lookups for the pod.
const bindingLag = time.Second

// A lookup finds one object. It runs in one goroutine; the resolver calls end.
type lookup struct {
	client     *client
	ref        manifest.ObjectRef
	ch         chan<- lookupResult
	isReported bool                   // a result was sent
	hasObject  bool                   // the last result was an object
	lack       manifest.MissingObject // the last reason that attachment has sent
	end        context.CancelFunc
}

// send sends a result unless ctx is done.
func (l *lookup) send(ctx context.Context, f lookupResult) {
	f.by = l
	select {
	case l.ch <- f:
		l.isReported, l.hasObject = true, f.object != nil
	case <-ctx.Done():
	}
}

// maxCachedWait is the longest wait after a failure if there is a cached object. It is longer
// than maxUncachedWait, because a node has many objects, which share a rate limit with pods.
const maxCachedWait = 30 * time.Second

// maxWait returns the longest wait after a failure.
func (l *lookup) maxWait() time.Duration {
	if l.hasObject {
		return maxCachedWait
	}
	return maxUncachedWait
}

// reportError sends an error of the API server as the reason, unless there is a result. A
// cached object is kept until the API server reports its deletion.
func (l *lookup) reportError(ctx context.Context, err error, since time.Time) {
	if l.isReported || !isAPIError(err) || apierrors.IsForbidden(err) && time.Since(since) < bindingLag {
		return
	}
	l.send(ctx, lookupResult{lack: manifest.MissingObject{Why: fmt.Sprintf("looking up %s: %v", l.name(), withoutHost(err))}})
	l.isReported = false // a later error may be more specific
}

// withoutHost returns err without the host of a hostError, which is not relevant for users of
// a pod.
func withoutHost(err error) error {
	if at, ok := err.(hostError); ok {
		return at.err
	}
	return err
}

// name returns the object as in the "not found" errors of the API server.
func (l *lookup) name() string {
	kind := l.ref.Kind
	if kind != "RuntimeClass" {
		kind = strings.ToLower(kind)
	}
	return fmt.Sprintf("%s %q", kind, l.ref.Name)
}

func (l *lookup) notFound() lookupResult {
	return lookupResult{lack: manifest.MissingObject{Absent: true, Why: l.name() + " not found"}}
}

// watchObject lists and watches one ConfigMap, Secret or RuntimeClass.
func watchObject[T object](ctx context.Context, l *lookup, list runtime.Object) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store := &objectStore[T]{ctx: ctx, lookup: l, stop: cancel, since: time.Now()}
	f := reflector[T]{client: l.client, query: l.client.object(l.ref), list: list, store: store, reporter: store, first: firstLookupWait, maxWait: l.maxWait, watchTimeout: objectWatchTimeout}
	f.run(ctx)
}

// An objectStore is the store and the reporter of a reflector for one object. It sends the
// snapshots and errors as results of a lookup.
type objectStore[T object] struct {
	ctx context.Context
	*lookup
	stop  func()    // stops the reflector
	since time.Time // start of the lookup
}

func (o *objectStore[T]) get() (s snapshot[T], _ <-chan struct{}) { return s, nil }

func (o *objectStore[T]) set(s snapshot[T]) {
	item, exists := s.items[o.ref.NamespacedName]
	if !exists {
		o.send(o.ctx, o.notFound())
		return
	}
	o.send(o.ctx, lookupResult{object: item})
	if isImmutable(item) {
		o.stop()
	}
}

func (o *objectStore[T]) report(ctx context.Context, _ part, err error) {
	if err != nil {
		o.reportError(ctx, err, o.since)
	}
}

// isImmutable reports whether an object is immutable and needs no watch. If it is deleted and
// created again, pods get the new one only when no pod uses the old one any more.
func isImmutable(o any) bool {
	switch o := o.(type) {
	case *v1.ConfigMap:
		return o.Immutable != nil && *o.Immutable
	case *v1.Secret:
		return o.Immutable != nil && *o.Immutable
	}
	return false
}

// object returns a list request for one object, because the node authorizer permits no other
// lists and watches.
func (c *client) object(ref manifest.ObjectRef) func() *rest.Request {
	return func() *rest.Request {
		field := "metadata.name=" + ref.Name
		if ref.Kind == "RuntimeClass" {
			return c.classes.Get().Resource("runtimeclasses").Param("fieldSelector", field)
		}
		return c.core.Get().Namespace(ref.Namespace).Resource(strings.ToLower(ref.Kind)+"s").Param("fieldSelector", field)
	}
}

// drivers returns a list request for all CSIDrivers, because pods may use any of them.
func (c *client) drivers() *rest.Request { return c.storage.Get().Resource("csidrivers") }

// services returns a list request for all Services, because pods of any namespace may run
// here.
func (c *client) services() *rest.Request { return c.core.Get().Resource("services") }
