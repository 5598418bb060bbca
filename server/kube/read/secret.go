package read

import (
	"context"
	"net/http"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/server"
	"podd/server/auth"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// hiddenWarning is the Warning header of a response without the data of Secrets.
// kubectl prints it.
const hiddenWarning = `299 - "Secrets are shown without their data: to read the data, send the request to the node's own port as a user who may create nodes/proxy or get secrets"`

// secretFilter removes the data of Secrets that the sender of a request may not read.
type secretFilter struct {
	mayReadSecret func(ctx context.Context, u auth.User, namespace, name string) bool
	r             *http.Request
	name          string // name of the requested Secret; "" if several are requested
}

// newSecretFilter returns the filter for a request. It returns nil if the requested objects are not
// Secrets or Options.MayReadSecret is not set. A nil filter removes nothing.
func (h *Handler) newSecretFilter(r *http.Request, res *resource.Definition, i request.Info) *secretFilter {
	if h.mayReadSecret == nil || res.Name != "secrets" {
		return nil
	}
	return &secretFilter{h.mayReadSecret, r, i.Name}
}

// mayRead reports whether the sender may read the data of the requested Secrets in a
// namespace.
func (q *secretFilter) mayRead(namespace string) bool {
	return !server.IsForwarded(q.r) && q.mayReadSecret(q.r.Context(), auth.UserFrom(q.r.Context()), namespace, q.name)
}

// filterEntry returns e or, if the sender may not read the data of the Secret, a copy of e without
// the data.
func (q *secretFilter) filterEntry(e *resource.Entry) *resource.Entry {
	if q == nil || q.mayRead(e.Key.Namespace) {
		return e
	}
	return withoutData(e)
}

// filterEntries returns the given entries without the data that the sender may not read.
// isDataRemoved reports whether the data of any Secret was removed. The entries must be sorted by
// namespace.
func (q *secretFilter) filterEntries(entries []*resource.Entry) (filtered []*resource.Entry, isDataRemoved bool) {
	if q == nil {
		return entries, false
	}
	filtered = slices.Clone(entries)
	mayRead := false
	for n, e := range entries {
		if n == 0 || entries[n-1].Key.Namespace != e.Key.Namespace {
			mayRead = q.mayRead(e.Key.Namespace)
		}
		if !mayRead {
			filtered[n], isDataRemoved = withoutData(e), true
		}
	}
	return filtered, isDataRemoved
}

// withoutData returns a Secret without its values, and without the annotation of kubectl apply,
// which repeats the values.
func withoutData(e *resource.Entry) *resource.Entry {
	s := *e.Object.(*v1.Secret)
	s.Data, s.StringData = nil, nil
	if _, repeatsValues := s.Annotations[v1.LastAppliedConfigAnnotation]; repeatsValues {
		annotations := map[string]string{}
		for name, value := range s.Annotations {
			if name != v1.LastAppliedConfigAnnotation {
				annotations[name] = value
			}
		}
		s.Annotations = annotations
	}
	return e.WithObject(&s)
}
