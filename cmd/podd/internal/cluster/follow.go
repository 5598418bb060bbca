package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// watchTime is how long the API server is asked to keep a watch, and up to twice
// that: nodes that started together do not come back together.
const watchTime = 5 * time.Minute

// shortWatch is a watch so short that the next waits: a proxy that ends each at
// once is no reason to ask without end.
const shortWatch = time.Second

var errShortWatch = errors.New("watches end at once")

// mostBlind is the longest wait of who does not know what the cluster has: it is
// to be right soon after the cluster is back.
const mostBlind = 4 * time.Second

// sighting is the Node as the cluster has it; nil: it has none.
type sighting struct {
	node *v1.Node
	anew bool // the first, or the first after trouble
}

// follow tells of a node until ctx is done.
func (c *client) follow(ctx context.Context, name string, nodes chan<- sighting, s *speaker) {
	f := &follower{client: c, name: name, nodes: nodes}
	var b backoff
	for ctx.Err() == nil {
		version, err := f.list(ctx)
		if err == nil {
			s.report(ctx, ofNode, nil)
		}
		for err == nil {
			began := time.Now()
			version, err = f.watch(ctx, version)
			if time.Since(began) >= shortWatch {
				b = backoff{}
			} else if err == nil {
				err = f.at(errShortWatch)
			}
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			s.report(ctx, ofNode, err)
		}
		sleep(ctx, min(b.next(), mostBlind))
	}
}

type follower struct {
	*client
	name  string
	nodes chan<- sighting
}

// list tells of the node and returns the version to watch from.
func (f *follower) list(ctx context.Context) (string, error) {
	var l v1.NodeList
	if err := f.into(ctx, f.query(), &l); err != nil {
		return "", err
	}
	var n *v1.Node
	if len(l.Items) > 0 {
		n = &l.Items[0]
	}
	return l.ResourceVersion, f.tell(ctx, sighting{n, true})
}

// watch tells of changes after a version and returns the last, with nil when the
// server ends it as asked.
func (f *follower) watch(ctx context.Context, version string) (string, error) {
	seconds := int64((watchTime + rand.N(watchTime)) / time.Second)
	q := f.query().Param("watch", "true").Param("resourceVersion", version).Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.FormatInt(seconds, 10))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(requestTime, func() { cancel(context.DeadlineExceeded) })
	w, err := q.Watch(ctx)
	late.Stop()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return version, f.at(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		n, ok := e.Object.(*v1.Node)
		if !ok {
			return version, f.at(apierrors.FromObject(e.Object))
		}
		version = n.ResourceVersion
		switch e.Type {
		case watch.Bookmark:
			continue
		case watch.Deleted:
			n = nil
		}
		if err := f.tell(ctx, sighting{node: n}); err != nil {
			return version, err
		}
	}
	return version, ctx.Err()
}

// query asks for this node alone: the API server allows a node no other.
func (f *follower) query() *rest.Request {
	return f.core.Get().Resource("nodes").Param("fieldSelector", "metadata.name="+f.name)
}

func (f *follower) tell(ctx context.Context, n sighting) error {
	select {
	case f.nodes <- n:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
