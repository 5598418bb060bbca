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

// ReviewOptions say for how long the cluster's answers count; all are required.
type ReviewOptions struct {
	Tokens          time.Duration // whose a token is; that it is nobody's, for a while of it
	Allowed, Denied time.Duration
}

// Reviews asks the cluster who its users are and what they may on this node. While
// no connection can be made, what it said before counts for as long as it would
// have. Safe for concurrent use.
type Reviews struct {
	o    ReviewOptions
	log  *slog.Logger
	now  atomic.Pointer[connection]
	told atomic.Int64 // when the log was told of trouble, in Unix nanoseconds
}

// connection is to one cluster, perhaps, with what that has said.
type connection struct {
	client *client // nil: there is none yet
	tokens *answers[auth.User]
	access *answers[struct{}]
}

var _ auth.Authorizer = (*Reviews)(nil)

// Reviews are those of the cluster, which is asked when Run has connected; before that
// nothing is known. It is called once at most, before Run.
func (c *Cluster) Reviews(o ReviewOptions) *Reviews {
	c.reviews = newReviews(o, c.o.Log)
	return c.reviews
}

func newReviews(o ReviewOptions, log *slog.Logger) *Reviews {
	r := &Reviews{o: o, log: log}
	r.use(nil)
	return r
}

// mostUnknown is the longest that a token is nobody's: an API server that could not ask
// its own authenticators says so, too, and one that was just made may be good.
const mostUnknown = 10 * time.Second

// use has another cluster asked, perhaps: what the last one said, or says yet, counts
// no more.
func (r *Reviews) use(c *client) {
	r.now.Store(&connection{
		c, newAnswers[auth.User](r.o.Tokens, min(r.o.Tokens, mostUnknown)), newAnswers[struct{}](r.o.Allowed, r.o.Denied),
	})
}

var (
	errNotYet = errors.New("there is no connection to the cluster yet")
	errBoth   = errors.New("the cluster allows it and denies it")
	errRules  = errors.New("a cluster tells whether somebody may do a thing, and not all that they may")
)

// User tells whose a token is: auth.Authenticator.Review. Why the cluster could not
// be asked is told to the log alone.
func (r *Reviews) User(ctx context.Context, token string) (auth.User, bool) {
	c := r.now.Load()
	u, known, err := c.tokens.get([]byte(token), func() (auth.User, bool, error) { return c.review(ctx, token) })
	if err != nil {
		r.tell("the cluster was not asked whose a token is, and it counts for none", err)
	}
	return u, known && err == nil
}

func (c *connection) review(ctx context.Context, token string) (u auth.User, known bool, err error) {
	q := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}
	if err := c.ask(ctx, func(c *client) *rest.RESTClient { return c.tokens }, "tokenreviews", q); err != nil || !q.Status.Authenticated {
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

// Allows implements auth.Authorizer. Of several subresources the first that is
// allowed does; an error at one is the answer.
func (r *Reviews) Allows(ctx context.Context, u auth.User, a auth.Attributes) (bool, error) {
	for _, spec := range specs(u, a) {
		if may, err := r.may(ctx, spec); err != nil || may {
			return may, err
		}
	}
	return false, nil
}

// specs ask of each subresource.
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

func (r *Reviews) may(ctx context.Context, spec authorization.SubjectAccessReviewSpec) (bool, error) {
	key, err := json.Marshal(spec) // maps in order
	if err != nil {
		return false, err
	}
	c := r.now.Load()
	_, may, err := c.access.get(key, func() (_ struct{}, may bool, err error) {
		q := &authorization.SubjectAccessReview{Spec: spec}
		err = c.ask(ctx, func(c *client) *rest.RESTClient { return c.access }, "subjectaccessreviews", q)
		if s := q.Status; err == nil && s.Allowed && s.Denied {
			err = errBoth
		}
		return struct{}{}, q.Status.Allowed, err
	})
	if err != nil {
		r.tell("the cluster was not asked what user "+spec.User+" may", err)
	}
	return may, err
}

// Rules implements auth.Authorizer.
func (r *Reviews) Rules(auth.User, string) ([]rbac.PolicyRule, error) { return nil, errRules }

// ask has the cluster answer a review, in it. Who left may be one of several who
// wait for that.
func (c *connection) ask(ctx context.Context, of func(*client) *rest.RESTClient, resource string, review runtime.Object) error {
	if c.client == nil {
		return errNotYet
	}
	return c.client.into(context.WithoutCancel(ctx), of(c.client).Post().Resource(resource).Body(review), review)
}

// tellEvery is how often the log is told of trouble: there may be many requests.
const tellEvery = time.Minute

func (r *Reviews) tell(what string, err error) {
	now, last := time.Now().UnixNano(), r.told.Load()
	if now-last < int64(tellEvery) || !r.told.CompareAndSwap(last, now) {
		return
	}
	r.log.Warn(what, "why", strings.TrimSuffix(troubleOf(err).text, meanwhile))
}
