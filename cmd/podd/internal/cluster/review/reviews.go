package review

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/server/auth"
)

// Options contains the durations for which results of reviews are cached. With the duration 0,
// a result is used only for requests that are waiting for it.
type Options struct {
	TokenTTL              time.Duration // for results of token reviews; at most maxUnknownTTL for unknown tokens
	AllowedTTL, DeniedTTL time.Duration // for access reviews that allow a request, and for access reviews that deny a request
}

// Reviews authenticates clients of this node with TokenReviews and authorizes them with
// SubjectAccessReviews. Without a connection to the API server, cached results remain valid until
// they expire. Reviews is safe for concurrent use.
type Reviews struct {
	o        Options
	describe func(error) string
	log      *slog.Logger
	conn     atomic.Pointer[reviewClient]
	loggedAt atomic.Int64 // time of the last log message, in Unix nanoseconds
}

// A reviewClient is a client and the cached results of its cluster.
type reviewClient struct {
	client *apiserver.Client // may be nil
	tokens *reviewCache[auth.User]
	access *reviewCache[struct{}]
}

var _ auth.Authorizer = (*Reviews)(nil)

// New returns Reviews without a client. Reviews fail until SetClient is called. describe returns
// the message of the error of a request for the log. It must not be nil.
func New(o Options, describe func(error) string, log *slog.Logger) *Reviews {
	r := &Reviews{o: o, describe: describe, log: log}
	r.SetClient(nil)
	return r
}

// maxUnknownTTL is the longest time for which an unknown token is cached. It is short, because the
// token may just have been created, or the API server may have failed to reach its own
// authenticators.
const maxUnknownTTL = 10 * time.Second

// SetClient sets the client for further reviews. It drops the cached results, because they may
// come from another cluster.
func (r *Reviews) SetClient(c *apiserver.Client) {
	r.conn.Store(&reviewClient{
		c, newReviewCache[auth.User](r.o.TokenTTL, min(r.o.TokenTTL, maxUnknownTTL)), newReviewCache[struct{}](r.o.AllowedTTL, r.o.DeniedTTL),
	})
}

var (
	errContradiction = errors.New("the response to the SubjectAccessReview both allows and denies the request")
	errNoRules       = errors.New("podd cannot list the permissions of users, because the cluster authorizes requests (authorization mode Webhook)")
)

// Authenticate implements auth.Authenticator.Review. It returns the user of a bearer token. ok is
// false if the API server does not accept the token or the review fails. Authenticate logs the
// failure of a review.
func (r *Reviews) Authenticate(ctx context.Context, token string) (u auth.User, ok bool) {
	c := r.conn.Load()
	u, isAuthenticated, err := c.tokens.get([]byte(token), func() (auth.User, bool, error) { return c.reviewToken(ctx, token) })
	if err != nil {
		r.logFailure("token review failed; rejecting the token", err)
	}
	return u, isAuthenticated && err == nil
}

// reviewToken sends a TokenReview and returns the user of the token.
func (c *reviewClient) reviewToken(ctx context.Context, token string) (u auth.User, isAuthenticated bool, err error) {
	q := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}
	if err := c.request(ctx, func(c *apiserver.Client) *rest.RESTClient { return c.TokenReviews }, "tokenreviews", q); err != nil || !q.Status.Authenticated {
		return u, false, err
	}
	user := q.Status.User
	u = auth.User{Name: user.Username, UID: user.UID, Groups: user.Groups}
	for name, values := range user.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[name] = values
	}
	return u, true, nil
}

// Allows implements auth.Authorizer. It requests a review for one subresource after another. It
// stops at the first review that allows the request or fails.
func (r *Reviews) Allows(ctx context.Context, u auth.User, a auth.Attributes) (bool, error) {
	for _, spec := range reviewSpecs(u, a) {
		if allowed, err := r.isAllowed(ctx, spec); err != nil || allowed {
			return allowed, err
		}
	}
	return false, nil
}

// reviewSpecs returns a spec of a SubjectAccessReview for each subresource in a.
func reviewSpecs(u auth.User, a auth.Attributes) (specs []authorization.SubjectAccessReviewSpec) {
	user := authorization.SubjectAccessReviewSpec{User: u.Name, UID: u.UID, Groups: u.Groups}
	for name, values := range u.Extra {
		if user.Extra == nil {
			user.Extra = map[string]authorization.ExtraValue{}
		}
		user.Extra[name] = values
	}
	if a.Resource == "" {
		user.NonResourceAttributes = &authorization.NonResourceAttributes{Path: a.Path, Verb: a.Verb}
		return append(specs, user)
	}
	for _, sub := range a.Subresources {
		spec := user
		spec.ResourceAttributes = &authorization.ResourceAttributes{
			Verb: a.Verb, Group: a.Group, Version: "v1", Resource: a.Resource, Subresource: sub, Namespace: a.Namespace, Name: a.Name,
		}
		specs = append(specs, spec)
	}
	return specs
}

// isAllowed returns the cached or requested result of a SubjectAccessReview.
func (r *Reviews) isAllowed(ctx context.Context, spec authorization.SubjectAccessReviewSpec) (bool, error) {
	key, err := json.Marshal(spec) // equal specs have equal keys, because json.Marshal sorts maps
	if err != nil {
		return false, err
	}
	c := r.conn.Load()
	_, allowed, err := c.access.get(key, func() (_ struct{}, allowed bool, err error) {
		q := &authorization.SubjectAccessReview{Spec: spec}
		err = c.request(ctx, func(c *apiserver.Client) *rest.RESTClient { return c.AccessReviews }, "subjectaccessreviews", q)
		if s := q.Status; err == nil && s.Allowed && s.Denied {
			err = errContradiction
		}
		return struct{}{}, q.Status.Allowed, err
	})
	if err != nil {
		r.logFailure("access review failed; denying the request", err, "user", spec.User)
	}
	return allowed, err
}

// Rules implements auth.Authorizer. It always fails, because an API server does not list the
// rules of other users.
func (r *Reviews) Rules(auth.User, string) ([]rbac.PolicyRule, error) { return nil, errNoRules }

// request creates a review object and decodes the response into review. group selects the REST
// client. The request is not cancelled with ctx, because other callers may be waiting for the
// same result.
func (c *reviewClient) request(ctx context.Context, group func(*apiserver.Client) *rest.RESTClient, resource string, review runtime.Object) error {
	if c.client == nil {
		return apiserver.ErrNotConnected
	}
	return c.client.Do(context.WithoutCancel(ctx), group(c.client).Post().Resource(resource).Body(review), review)
}

// logInterval is the minimum interval between log messages about failed reviews.
const logInterval = time.Minute

// logFailure logs a warning with attributes, unless a failure was logged within the last
// logInterval.
func (r *Reviews) logFailure(message string, err error, attributes ...any) {
	now, last := time.Now().UnixNano(), r.loggedAt.Load()
	if now-last < int64(logInterval) || !r.loggedAt.CompareAndSwap(last, now) {
		return
	}
	r.log.Warn(message, append(attributes, "err", r.describe(err))...)
}
