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

// soon is the first wait of who has no answer yet: a pod waits for it, and the API
// server may not have heard yet that the pod is bound to this node.
const soon = 20 * time.Millisecond

// lag is how long the API server may take for that.
const lag = time.Second

// lookup is of one object. One goroutine runs it; end is the resolver's.
type lookup struct {
	client *client
	ref    manifest.ObjectRef
	tell   chan<- finding
	told   bool          // something was
	has    bool          // an object was found last
	lack   manifest.Lack // told last, of an attachment
	end    context.CancelFunc
}

// send tells what was found; a ctx that is done finds nothing.
func (l *lookup) send(ctx context.Context, f finding) {
	f.by = l
	select {
	case l.tell <- f:
		l.told, l.has = true, f.object != nil
	case <-ctx.Done():
	}
}

// mostKnown is the longest wait of who has an object. There are many of them on a
// node, and one limit of requests for all: the pods themselves come first.
const mostKnown = 30 * time.Second

func (l *lookup) most() time.Duration {
	if l.has {
		return mostKnown
	}
	return mostBlind
}

// lacks tells why there is no object, where that was not told. One that is known
// stays so: only the cluster's word that it is gone ends that.
func (l *lookup) lacks(ctx context.Context, err error, since time.Time) {
	if l.told || !answered(err) || apierrors.IsForbidden(err) && time.Since(since) < lag {
		return
	}
	l.send(ctx, finding{lack: manifest.Lack{Why: fmt.Sprintf("looking up %s: %v", l.name(), told(err))}})
	l.told = false // another error may come to be known better
}

// told is an error without the host, which pods' users need not know.
func told(err error) error {
	if at, ok := err.(atError); ok {
		return at.err
	}
	return err
}

// name is as Kubernetes tells users of an object that is not there.
func (l *lookup) name() string {
	kind := l.ref.Kind
	if kind != "RuntimeClass" {
		kind = strings.ToLower(kind)
	}
	return fmt.Sprintf("%s %q", kind, l.ref.Name)
}

func (l *lookup) absent() finding {
	return finding{lack: manifest.Lack{Absent: true, Why: l.name() + " not found"}}
}

// follow keeps a ConfigMap, Secret or RuntimeClass the newest: as the node
// authorizer demands by a list and a watch of that one alone.
func follow[T object](ctx context.Context, l *lookup, list runtime.Object) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	one := &oneObject[T]{ctx: ctx, lookup: l, frozen: cancel, since: time.Now()}
	f := follower[T]{client: l.client, query: l.client.object(l.ref), list: list, seen: one, say: one, first: soon, most: l.most, last: objectWatchTime}
	f.run(ctx)
}

// oneObject takes what a follower of one object sees.
type oneObject[T object] struct {
	ctx context.Context
	*lookup
	frozen func() // nothing else is to be seen
	since  time.Time
}

func (o *oneObject[T]) get() (s sighting[T], _ <-chan struct{}) { return s, nil }

func (o *oneObject[T]) set(s sighting[T]) {
	item, there := s.items[o.ref.NamespacedName]
	if !there {
		o.send(o.ctx, o.absent())
		return
	}
	o.send(o.ctx, finding{object: item})
	if immutable(item) {
		o.frozen()
	}
}

func (o *oneObject[T]) report(ctx context.Context, _ part, err error) {
	if err != nil {
		o.lacks(ctx, err, o.since)
	}
}

// immutable objects need no watch. One that is deleted and made anew is another for
// pods that come later, once those that had it are gone.
func immutable(o any) bool {
	switch o := o.(type) {
	case *v1.ConfigMap:
		return o.Immutable != nil && *o.Immutable
	case *v1.Secret:
		return o.Immutable != nil && *o.Immutable
	}
	return false
}

// object asks for one object, as a list: the API server allows a node no other.
func (c *client) object(ref manifest.ObjectRef) func() *rest.Request {
	return func() *rest.Request {
		field := "metadata.name=" + ref.Name
		if ref.Kind == "RuntimeClass" {
			return c.classes.Get().Resource("runtimeclasses").Param("fieldSelector", field)
		}
		return c.core.Get().Namespace(ref.Namespace).Resource(strings.ToLower(ref.Kind)+"s").Param("fieldSelector", field)
	}
}

// drivers asks for all: claims of any may come to be here.
func (c *client) drivers() *rest.Request { return c.storage.Get().Resource("csidrivers") }

// services asks for all: those of any namespace may come to have pods here.
func (c *client) services() *rest.Request { return c.core.Get().Resource("services") }
