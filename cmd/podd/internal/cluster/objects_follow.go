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

// firstLookupWait is the initial wait without a response, because a pod is waiting, and
// the API server may not know yet that the pod is bound to this node.
const firstLookupWait = 20 * time.Millisecond

// bindingLag is how long the API server may take for that.
const bindingLag = time.Second

// A lookup finds one object. It runs in one goroutine; the resolver calls end.
type lookup struct {
	client     *client
	ref        manifest.ObjectRef
	ch         chan<- lookupResult
	isReported bool                   // a result was sent
	hasObject  bool                   // the last result was an object
	lack       manifest.MissingObject // the last reason sent for an attachment
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

// maxCachedWait is the longest wait with a cached object. A node has many objects, which
// share a rate limit with the pods.
const maxCachedWait = 30 * time.Second

func (l *lookup) maxWait() time.Duration {
	if l.hasObject {
		return maxCachedWait
	}
	return maxUncachedWait
}

// reportError sends the error if nothing was sent before. A known object is kept: it is
// only removed when the cluster reports that it was deleted.
func (l *lookup) reportError(ctx context.Context, err error, since time.Time) {
	if l.isReported || !isAPIError(err) || apierrors.IsForbidden(err) && time.Since(since) < bindingLag {
		return
	}
	l.send(ctx, lookupResult{lack: manifest.MissingObject{Why: fmt.Sprintf("looking up %s: %v", l.name(), withoutHost(err))}})
	l.isReported = false // a later error may be more specific
}

// withoutHost removes the host from an error, because users of pods do not need it.
func withoutHost(err error) error {
	if at, ok := err.(hostError); ok {
		return at.err
	}
	return err
}

// name formats the object as in the API server's "not found" errors.
func (l *lookup) name() string {
	kind := l.ref.Kind
	if kind != "RuntimeClass" {
		kind = strings.ToLower(kind)
	}
	return fmt.Sprintf("%s %q", kind, l.ref.Name)
}

func (l *lookup) absent() lookupResult {
	return lookupResult{lack: manifest.MissingObject{Absent: true, Why: l.name() + " not found"}}
}

// follow lists and watches a ConfigMap, Secret or RuntimeClass. The node authorizer
// permits only lists and watches of a single object.
func follow[T object](ctx context.Context, l *lookup, list runtime.Object) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	one := &oneObject[T]{ctx: ctx, lookup: l, stop: cancel, since: time.Now()}
	f := reflector[T]{client: l.client, query: l.client.object(l.ref), list: list, store: one, reporter: one, first: firstLookupWait, maxWait: l.maxWait, watchTime: objectWatchTime}
	f.run(ctx)
}

// oneObject passes the snapshots of a reflector for one object to its lookup.
type oneObject[T object] struct {
	ctx context.Context
	*lookup
	stop  func() // ends the reflector
	since time.Time
}

func (o *oneObject[T]) get() (s snapshot[T], _ <-chan struct{}) { return s, nil }

func (o *oneObject[T]) set(s snapshot[T]) {
	item, there := s.items[o.ref.NamespacedName]
	if !there {
		o.send(o.ctx, o.absent())
		return
	}
	o.send(o.ctx, lookupResult{object: item})
	if immutable(item) {
		o.stop()
	}
}

func (o *oneObject[T]) report(ctx context.Context, _ part, err error) {
	if err != nil {
		o.reportError(ctx, err, o.since)
	}
}

// immutable reports whether an object needs no watch. If it is deleted and created again,
// later pods get the new one when no earlier pod uses the old one any more.
func immutable(o any) bool {
	switch o := o.(type) {
	case *v1.ConfigMap:
		return o.Immutable != nil && *o.Immutable
	case *v1.Secret:
		return o.Immutable != nil && *o.Immutable
	}
	return false
}

// object returns a list request for one object, because the node authorizer permits no
// other.
func (c *client) object(ref manifest.ObjectRef) func() *rest.Request {
	return func() *rest.Request {
		field := "metadata.name=" + ref.Name
		if ref.Kind == "RuntimeClass" {
			return c.classes.Get().Resource("runtimeclasses").Param("fieldSelector", field)
		}
		return c.core.Get().Namespace(ref.Namespace).Resource(strings.ToLower(ref.Kind)+"s").Param("fieldSelector", field)
	}
}

// drivers requests all CSIDrivers, because a claim of any may be used here.
func (c *client) drivers() *rest.Request { return c.storage.Get().Resource("csidrivers") }

// services requests all Services, because pods of any namespace may run here.
func (c *client) services() *rest.Request { return c.core.Get().Resource("services") }
