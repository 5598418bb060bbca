// Package read serves get, list and watch requests.
//
// For every resource that was requested at least once, a store retains the objects and the newest
// changes (store.go). The store has no goroutine. It is updated by every request, and by every
// watcher when there is a new View. All watchers share the list of changes and the encoded objects.
// A watcher itself stores only the revision up to which it has sent changes. A watcher that needs
// changes that are no longer retained receives 410 Gone, and the client lists again.
//
// If Options.MayReadSecret is set, the data of Secrets is removed from responses to users for whom
// it returns false (secret.go).
package read

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/server"
	"podd/server/auth"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// EventSource provides the events of objects of this node. It must be safe for
// concurrent use.
type EventSource interface {
	// Events returns the retained events with a revision greater than afterRevision, and the newest
	// revision. The resourceVersion of an event is its own revision.
	Events(afterRevision uint64) (events []*v1.Event, newest uint64)
	// Changed returns a channel that is closed when there is a revision greater than afterRevision.
	Changed(afterRevision uint64) <-chan struct{}
}

// Meter measures the resource usage of pods and the node. It must be safe for
// concurrent use.
type Meter interface {
	Usage(ctx context.Context) (*server.Usage, error)
}

// Options configure a Handler. State and Now are required.
type Options struct {
	State  server.Viewer
	Events EventSource // nil if there are none
	Meter  Meter       // required if resources of metrics.k8s.io, which have Definition.Measure, are served
	// MayReadSecret has the meaning of kube.API.MayReadSecret.
	MayReadSecret func(ctx context.Context, u auth.User, namespace, name string) bool
	// Now returns the time from which ages in tables are computed.
	Now func() time.Time
}

// Handler serves get, list and watch requests. It is safe for concurrent use.
type Handler struct {
	state         server.Viewer
	meter         Meter
	mayReadSecret func(ctx context.Context, u auth.User, namespace, name string) bool
	now           func() time.Time
	store         *store
}

// New returns a Handler.
func New(o Options) *Handler {
	if o.Events == nil {
		o.Events = noEvents{}
	}
	return &Handler{o.State, o.Meter, o.MayReadSecret, o.Now, newStore(o.State, o.Events)}
}

// Serve serves a request with the verb get, list or watch.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, res *resource.Definition, i request.Info) {
	switch i.Verb {
	case "get":
		h.get(w, r, res, i)
	case "list":
		h.list(w, r, res, i)
	case "watch":
		h.watch(w, r, res, i)
	}
}

// Find returns an object, or the API's error NotFound if the object does not exist.
func (h *Handler) Find(ctx context.Context, res *resource.Definition, key server.Key) (*resource.Entry, error) {
	entries, _, err := h.entries(ctx, res)
	if err != nil {
		return nil, err
	}
	n, found := sort.Find(len(entries), func(n int) int { return key.Compare(entries[n].Key) })
	if !found {
		return nil, res.NotFound(h.state.View(), key)
	}
	return entries[n], nil
}

// Select returns the objects in a namespace that match the label and field selectors of a
// query, and the revision of the list. The namespace "" selects all namespaces.
func (h *Handler) Select(ctx context.Context, res *resource.Definition, namespace string, q url.Values) (selected []*resource.Entry, rev uint64, err error) {
	s, err := parseSelection(res, namespace, q)
	if err != nil {
		return nil, 0, err
	}
	entries, rev, err := h.entries(ctx, res)
	return slices.DeleteFunc(slices.Clone(entries), func(e *resource.Entry) bool { return !s.matches(e.Object) }), rev, err
}

// entries returns all objects of a resource, sorted by key, and the revision of the list.
func (h *Handler) entries(ctx context.Context, res *resource.Definition) (entries []*resource.Entry, rev uint64, err error) {
	if res.Measure != nil {
		return h.measureEntries(ctx, res)
	}
	entries, rev = h.store.list(res)
	return entries, rev, nil
}

// measureEntries measures a resource and returns its objects and a revision, which is
// the time of the measurement.
func (h *Handler) measureEntries(ctx context.Context, res *resource.Definition) ([]*resource.Entry, uint64, error) {
	usage, err := h.meter.Usage(ctx)
	if err != nil {
		return nil, 0, err
	}
	rev := uint64(usage.At.UnixMicro())
	var entries []*resource.Entry
	for _, i := range res.Measure(usage, h.state.View()) {
		entries = append(entries, res.NewEntry(i, rev))
	}
	return entries, rev, nil
}
