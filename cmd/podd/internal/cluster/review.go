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
	Tokens          time.Duration // for tokens; unknown tokens are cached for maxUnknown at most
	Allowed, Denied time.Duration // for authorizations
}

// Reviews authenticates and authorizes clients of this node with TokenReview and
// SubjectAccessReview. If there is no connection, cached results remain valid until they
// expire. It is safe for concurrent use.
type Reviews struct {
	o        ReviewOptions
	log      *slog.Logger
	conn     atomic.Pointer[connection]
	loggedAt atomic.Int64 // time of the last log message, in Unix nanoseconds
}

// A connection is a client and the cached results of its cluster.
type connection struct {
	client *client // may be nil
	tokens *reviewCache[auth.User]
	access *reviewCache[struct{}]
}

var _ auth.Authorizer = (*Reviews)(nil)

// Reviews enables reviews. They fail until Run has connected. It must be called at most once,
// before Run.
func (c *Cluster) Reviews(o ReviewOptions) *Reviews {
	c.reviews = newReviews(o, c.o.Log)
	return c.reviews
}

func newReviews(o ReviewOptions, log *slog.Logger) *Reviews {
	r := &Reviews{o: o, log: log}
	r.use(nil)
	return r
}

// maxUnknown limits how long an unknown token is cached, because it may just have been created,
// or the API server may not have reached its own authenticators.
const maxUnknown = 10 * time.Second

// use sets the client. It drops the cached results, because they may be those of another
// cluster.
func (r *Reviews) use(c *client) {
	r.conn.Store(&connection{
		c, newReviewCache[auth.User](r.o.Tokens, min(r.o.Tokens, maxUnknown)), newReviewCache[struct{}](r.o.Allowed, r.o.Denied),
	})
}

var (
	errNotConnected  = errors.New("not connected to the cluster yet")
	errContradiction = errors.New("the cluster both allows and denies the request")
	errNoRules       = errors.New("rules are not available, because the cluster authorizes requests")
)

// User implements auth.Authenticator.Review. If the review fails, it logs the error and returns
// false.
func (r *Reviews) User(ctx context.Context, token string) (auth.User, bool) {
	c := r.conn.Load()
	u, known, err := c.tokens.get([]byte(token), func() (auth.User, bool, error) { return c.review(ctx, token) })
	if err != nil {
		r.logFailure("reviewing a token failed; rejecting it", err)
	}
	return u, known && err == nil
}

// review sends a TokenReview.
func (c *connection) review(ctx context.Context, token string) (u auth.User, known bool, err error) {
	q := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}
	if err := c.request(ctx, func(c *client) *rest.RESTClient { return c.tokens }, "tokenreviews", q); err != nil || !q.Status.Authenticated {
		return u, false, err
	}
	info := q.Status.User
	u = auth.User{Name: info.Username, UID: info.UID, Groups: info.Groups}
	for name, values := range info.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[name] = values
	}
	return u, true, nil
}

// Allows implements auth.Authorizer. It reports whether one of the subresources is allowed, and
// stops at the first error.
func (r *Reviews) Allows(ctx context.Context, u auth.User, a auth.Attributes) (bool, error) {
	for _, spec := range specs(u, a) {
		if allowed, err := r.isAllowed(ctx, spec); err != nil || allowed {
			return allowed, err
		}
	}
	return false, nil
}

// specs returns a spec for each subresource.
func specs(u auth.User, a auth.Attributes) (all []authorization.SubjectAccessReviewSpec) {
	user := authorization.SubjectAccessReviewSpec{User: u.Name, UID: u.UID, Groups: u.Groups}
	for name, values := range u.Extra {
		if user.Extra == nil {
			user.Extra = map[string]authorization.ExtraValue{}
		}
		user.Extra[name] = values
	}
	if a.Resource == "" {
		user.NonResourceAttributes = &authorization.NonResourceAttributes{Path: a.Path, Verb: a.Verb}
		return append(all, user)
	}
	for _, sub := range a.Subresources {
		spec := user
		spec.ResourceAttributes = &authorization.ResourceAttributes{
			Verb: a.Verb, Group: a.Group, Version: "v1", Resource: a.Resource, Subresource: sub, Namespace: a.Namespace, Name: a.Name,
		}
		all = append(all, spec)
	}
	return all
}

// isAllowed returns the result of a SubjectAccessReview.
func (r *Reviews) isAllowed(ctx context.Context, spec authorization.SubjectAccessReviewSpec) (bool, error) {
	key, err := json.Marshal(spec) // json.Marshal sorts maps
	if err != nil {
		return false, err
	}
	c := r.conn.Load()
	_, allowed, err := c.access.get(key, func() (_ struct{}, allowed bool, err error) {
		q := &authorization.SubjectAccessReview{Spec: spec}
		err = c.request(ctx, func(c *client) *rest.RESTClient { return c.access }, "subjectaccessreviews", q)
		if s := q.Status; err == nil && s.Allowed && s.Denied {
			err = errContradiction
		}
		return struct{}{}, q.Status.Allowed, err
	})
	if err != nil {
		r.logFailure("reviewing the access of a user failed; denying it", err, "user", spec.User)
	}
	return allowed, err
}

// Rules implements auth.Authorizer.
func (r *Reviews) Rules(auth.User, string) ([]rbac.PolicyRule, error) { return nil, errNoRules }

// request sends a review. It is not cancelled with ctx, because other callers may wait for the
// result, too.
func (c *connection) request(ctx context.Context, group func(*client) *rest.RESTClient, resource string, review runtime.Object) error {
	if c.client == nil {
		return errNotConnected
	}
	return c.client.do(context.WithoutCancel(ctx), group(c.client).Post().Resource(resource).Body(review), review)
}

// logInterval is the minimum interval between log messages, because there may be many
// requests.
const logInterval = time.Minute

// logFailure logs a warning with attributes, unless one was logged within logInterval.
func (r *Reviews) logFailure(message string, err error, attributes ...any) {
	now, last := time.Now().UnixNano(), r.loggedAt.Load()
	if now-last < int64(logInterval) || !r.loggedAt.CompareAndSwap(last, now) {
		return
	}
	r.log.Warn(message, append(attributes, "err", strings.TrimSuffix(newProblem(err).message, retryNotice))...)
}
