package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"podd/server/auth"
)

// ReviewOptions contains the durations for which results are cached. All are required.
type ReviewOptions struct {
	Tokens          time.Duration // for authenticated tokens; unknown ones are cached for a shorter time
	Allowed, Denied time.Duration
}

// Reviews authenticates and authorizes clients of this node with TokenReview and
// SubjectAccessReview. If there is no connection, cached results remain valid until they
// expire. It is safe for concurrent use.
type Reviews struct {
	o        ReviewOptions
	log      *slog.Logger
	now      atomic.Pointer[connection]
	loggedAt atomic.Int64 // time of the last log message, in Unix nanoseconds
}

// A connection is a client and the results of its cluster.
type connection struct {
	client *client // may be nil
	tokens *reviewCache[auth.User]
	access *reviewCache[struct{}]
}

var _ auth.Authorizer = (*Reviews)(nil)

// Reviews returns the Reviews of the cluster, which return errors until Run has
// connected. It must be called at most once, before Run.
func (c *Cluster) Reviews(o ReviewOptions) *Reviews {
	c.reviews = newReviews(o, c.o.Log)
	return c.reviews
}

func newReviews(o ReviewOptions, log *slog.Logger) *Reviews {
	r := &Reviews{o: o, log: log}
	r.use(nil)
	return r
}

// maxUnknown limits the caching of unknown tokens, because an API server that could not
// reach its own authenticators also reports unknown, and a token may just have been
// created.
const maxUnknown = 10 * time.Second

// use sets the client. The cached results of the previous one are dropped, because its
// cluster may have been another one.
func (r *Reviews) use(c *client) {
	r.now.Store(&connection{
		c, newReviewCache[auth.User](r.o.Tokens, min(r.o.Tokens, maxUnknown)), newReviewCache[struct{}](r.o.Allowed, r.o.Denied),
	})
}

var (
	errNotYet = errors.New("there is no connection to the cluster yet")
	errBoth   = errors.New("the cluster allows it and denies it")
	errRules  = errors.New("a cluster tells whether somebody may do a thing, and not all that they may")
)

// User implements auth.Authenticator.Review. Errors are only logged.
func (r *Reviews) User(ctx context.Context, token string) (auth.User, bool) {
	c := r.now.Load()
	u, known, err := c.tokens.get([]byte(token), func() (auth.User, bool, error) { return c.review(ctx, token) })
	if err != nil {
		r.logFailure("the cluster was not asked whose a token is, and it counts for none", err)
	}
	return u, known && err == nil
}

func (c *connection) review(ctx context.Context, token string) (u auth.User, known bool, err error) {
	q := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}
	if err := c.request(ctx, func(c *client) *rest.RESTClient { return c.tokens }, "tokenreviews", q); err != nil || !q.Status.Authenticated {
		return u, false, err
	}
	is := q.Status.User
	u = auth.User{Name: is.Username, UID: is.UID, Groups: is.Groups}
	for name, values := range is.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[name] = values
	}
	return u, true, nil
}

// Allows implements auth.Authorizer. It returns true if one of the subresources is
// allowed. It stops at the first error.
func (r *Reviews) Allows(ctx context.Context, u auth.User, a auth.Attributes) (bool, error) {
	for _, spec := range specs(u, a) {
		if may, err := r.isAllowed(ctx, spec); err != nil || may {
			return may, err
		}
	}
	return false, nil
}

// specs returns a spec for each subresource.
func specs(u auth.User, a auth.Attributes) (all []authorization.SubjectAccessReviewSpec) {
	who := authorization.SubjectAccessReviewSpec{User: u.Name, UID: u.UID, Groups: u.Groups}
	for name, values := range u.Extra {
		if who.Extra == nil {
			who.Extra = map[string]authorization.ExtraValue{}
		}
		who.Extra[name] = values
	}
	if a.Resource == "" {
		who.NonResourceAttributes = &authorization.NonResourceAttributes{Path: a.Path, Verb: a.Verb}
		return append(all, who)
	}
	for _, sub := range a.Subresources {
		spec := who
		spec.ResourceAttributes = &authorization.ResourceAttributes{
			Verb: a.Verb, Group: a.Group, Version: "v1", Resource: a.Resource, Subresource: sub, Namespace: a.Namespace, Name: a.Name,
		}
		all = append(all, spec)
	}
	return all
}

func (r *Reviews) isAllowed(ctx context.Context, spec authorization.SubjectAccessReviewSpec) (bool, error) {
	key, err := json.Marshal(spec) // json.Marshal sorts maps
	if err != nil {
		return false, err
	}
	c := r.now.Load()
	_, may, err := c.access.get(key, func() (_ struct{}, may bool, err error) {
		q := &authorization.SubjectAccessReview{Spec: spec}
		err = c.request(ctx, func(c *client) *rest.RESTClient { return c.access }, "subjectaccessreviews", q)
		if s := q.Status; err == nil && s.Allowed && s.Denied {
			err = errBoth
		}
		return struct{}{}, q.Status.Allowed, err
	})
	if err != nil {
		r.logFailure("the cluster was not asked what user "+spec.User+" may", err)
	}
	return may, err
}

// Rules implements auth.Authorizer.
func (r *Reviews) Rules(auth.User, string) ([]rbac.PolicyRule, error) { return nil, errRules }

// request sends a review. It is not cancelled with ctx, because several callers may wait
// for it.
func (c *connection) request(ctx context.Context, of func(*client) *rest.RESTClient, resource string, review runtime.Object) error {
	if c.client == nil {
		return errNotYet
	}
	return c.client.do(context.WithoutCancel(ctx), of(c.client).Post().Resource(resource).Body(review), review)
}

// logInterval limits log messages, because there may be many requests.
const logInterval = time.Minute

func (r *Reviews) logFailure(what string, err error) {
	now, last := time.Now().UnixNano(), r.loggedAt.Load()
	if now-last < int64(logInterval) || !r.loggedAt.CompareAndSwap(last, now) {
		return
	}
	r.log.Warn(what, "why", strings.TrimSuffix(newProblem(err).text, retryNotice))
}
