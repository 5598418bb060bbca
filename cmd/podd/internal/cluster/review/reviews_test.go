package review

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/server/auth"
)

// A reviewer is an API server that only supports TokenReviews and SubjectAccessReviews.
type reviewer struct {
	requests    atomic.Int32 // number of requests
	unreachable atomic.Bool
	delay       time.Duration // time until a response is sent
}

// RoundTrip implements http.RoundTripper. The token "good" belongs to the user ann, who may get
// nodes/pods. A review for the namespace "both" is both allowed and denied.
func (f *reviewer) RoundTrip(q *http.Request) (*http.Response, error) {
	f.requests.Add(1)
	time.Sleep(f.delay)
	if f.unreachable.Load() {
		return nil, errors.New("dial: refused")
	}
	body := new(bytes.Buffer)
	if _, err := body.ReadFrom(q.Body); err != nil {
		return nil, err
	}
	switch q.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		r := clustertest.MustDecode[authentication.TokenReview](body.Bytes())
		r.TypeMeta = metav1.TypeMeta{Kind: "TokenReview", APIVersion: "authentication.k8s.io/v1"}
		if r.Spec.Token == "good" {
			r.Status = authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{
				Username: "ann", UID: "7", Groups: []string{"ops"}, Extra: map[string]authentication.ExtraValue{"a": {"b"}},
			}}
		}
		return clustertest.Response(201, r), nil
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		r := clustertest.MustDecode[authorization.SubjectAccessReview](body.Bytes())
		r.TypeMeta = metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}
		a := r.Spec.ResourceAttributes
		r.Status.Allowed = r.Spec.User == "ann" && r.Spec.UID == "7" && r.Spec.Extra["a"][0] == "b" && a != nil &&
			a.Verb == "get" && a.Version == "v1" && a.Resource == "nodes" && a.Name == "n1" && a.Subresource == "pods"
		r.Status.Denied = r.Status.Allowed && a.Namespace == "both"
		return clustertest.Response(201, r), nil
	}
	return clustertest.ErrorResponse(apierrors.NewBadRequest(q.URL.Path)), nil
}

// newTestReviews returns Reviews that are connected to f. It also checks the error of a review before
// the connection.
func newTestReviews(t *testing.T, f *reviewer, log *slog.Logger) *Reviews {
	t.Helper()
	c := clustertest.NewClient(t, f, apiserver.Options{QPS: 5000, Burst: 5000})
	r := New(Options{TokenTTL: 2 * time.Minute, AllowedTTL: 5 * time.Minute, DeniedTTL: 30 * time.Second}, error.Error, log)
	if _, err := r.Allows(t.Context(), auth.User{Name: "ann"}, pods); !errors.Is(err, apiserver.ErrNotConnected) {
		t.Errorf("before the connection: got error %v, want %v", err, apiserver.ErrNotConnected)
	}
	r.SetClient(c)
	return r
}

var (
	ann  = auth.User{Name: "ann", UID: "7", Groups: []string{"ops"}, Extra: map[string][]string{"a": {"b"}}}
	pods = auth.Attributes{Verb: "get", Resource: "nodes", Name: "n1", Subresources: []string{"pods", "proxy"}}
)

// TestReviewCache_Disabled checks that a cache with the duration 0 stores no result.
func TestReviewCache_Disabled(t *testing.T) {
	c, reviews := newReviewCache[int](0, 0), 0
	for _, isPositive := range []bool{true, true, false, false} {
		_, got, err := c.get([]byte("x"), func() (int, bool, error) { reviews++; return 1, isPositive, nil })
		if got != isPositive || err != nil {
			t.Errorf("review %d: got positive %t, error %v; want %t, no error", reviews, got, err, isPositive)
		}
	}
	if n := c.positive.Len() + c.negative.Len(); reviews != 4 || n != 0 {
		t.Errorf("got %d reviews and %d stored results, want 4 and 0", reviews, n)
	}
}

// TestReviews_Cache checks that Reviews caches results for the configured durations, even during an
// outage, and drops cached results when it gets a new connection.
func TestReviews_Cache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, log := &reviewer{}, &bytes.Buffer{}
		r := newTestReviews(t, f, slog.New(slog.NewTextHandler(log, nil)))
		exec := auth.Attributes{Verb: "create", Resource: "nodes", Name: "n1", Subresources: []string{"proxy"}}
		type results struct {
			isAuthenticated bool // the token "good" is valid
			isPodsAllowed   bool // ann may get nodes/pods
			execFails       bool // the review of create nodes/proxy fails; otherwise it denies the request
			requests        int32
		}
		check := func(step string, want results) {
			t.Helper()
			f.requests.Store(0)
			u, ok := r.Authenticate(t.Context(), "good")
			if ok != want.isAuthenticated || ok && (u.Name != "ann" || u.UID != "7" || u.Extra["a"][0] != "b") {
				t.Errorf("%s: token good: got user %v, authenticated %t; want authenticated %t", step, u, ok, want.isAuthenticated)
			}
			if u, ok := r.Authenticate(t.Context(), "bad"); ok {
				t.Errorf("%s: token bad: got user %v, want none", step, u)
			}
			if allowed, err := r.Allows(t.Context(), ann, pods); allowed != want.isPodsAllowed || err != nil && allowed {
				t.Errorf("%s: get nodes/pods: got allowed %t, error %v; want allowed %t", step, allowed, err, want.isPodsAllowed)
			}
			if allowed, err := r.Allows(t.Context(), ann, exec); allowed || (err != nil) != want.execFails {
				t.Errorf("%s: create nodes/proxy: got allowed %t, error %v; want allowed false, an error: %t", step, allowed, err, want.execFails)
			}
			if n := f.requests.Load(); n != want.requests {
				t.Errorf("%s: got %d requests, want %d", step, n, want.requests)
			}
		}
		check("first", results{isAuthenticated: true, isPodsAllowed: true, requests: 4})
		check("second", results{isAuthenticated: true, isPodsAllowed: true})
		time.Sleep(31 * time.Second) // the results for unknown tokens and denied requests have expired
		check("after 31 s", results{isAuthenticated: true, isPodsAllowed: true, requests: 2})
		f.unreachable.Store(true)
		check("unreachable", results{isAuthenticated: true, isPodsAllowed: true}) // all results are still cached
		time.Sleep(2 * time.Minute)
		check("unreachable for 2 min", results{isPodsAllowed: true, execFails: true, requests: 3})
		time.Sleep(3 * time.Minute)
		check("unreachable for 5 min", results{execFails: true, requests: 4})
		f.unreachable.Store(false)
		check("reachable", results{isAuthenticated: true, isPodsAllowed: true, requests: 4})
		r.SetClient(r.conn.Load().client)
		check("new connection", results{isAuthenticated: true, isPodsAllowed: true, requests: 4})
		if n := strings.Count(log.String(), "\n"); n != 3 || strings.Contains(log.String(), "good") || strings.Contains(log.String(), "bad") {
			t.Errorf("got %d log lines, want 3 lines without the tokens good and bad:\n%s", n, log)
		}
	})
}

// TestReviews_Concurrent checks that concurrent equal reviews share one request, even if the contexts
// of all callers end before the response.
func TestReviews_Concurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &reviewer{delay: time.Second}
		r := newTestReviews(t, f, slog.New(slog.DiscardHandler))
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Millisecond)
				defer cancel()
				if _, ok := r.Authenticate(ctx, "good"); !ok {
					t.Errorf("caller %d, token good: got no user, want ann", i)
				}
			})
		}
		all.Wait()
		if n := f.requests.Load(); n != 1 {
			t.Errorf("50 concurrent reviews: got %d requests, want 1", n)
		}
	})
}

// TestReviews_NewConnection checks that Reviews does not cache a result for a new connection if the
// result arrives over the previous connection.
func TestReviews_NewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &reviewer{delay: time.Second}
		r := newTestReviews(t, f, slog.New(slog.DiscardHandler))
		var calls sync.WaitGroup
		calls.Go(func() { r.Authenticate(t.Context(), "good") })
		synctest.Wait()
		r.SetClient(r.conn.Load().client)
		calls.Wait()
		f.unreachable.Store(true)
		if u, ok := r.Authenticate(t.Context(), "good"); ok {
			t.Errorf("token good over the new connection, which fails: got user %v, want none", u)
		}
	})
}

// TestReviews_Flood checks that the number of cached unknown tokens is limited, and that unknown tokens
// do not evict valid tokens from the cache.
func TestReviews_Flood(t *testing.T) {
	f := &reviewer{}
	r := newTestReviews(t, f, slog.New(slog.DiscardHandler))
	r.Authenticate(t.Context(), "good")
	for i := range 3 * maxCachedResults {
		r.Authenticate(t.Context(), fmt.Sprint("bad", i))
	}
	f.requests.Store(0)
	if _, ok := r.Authenticate(t.Context(), "good"); !ok || f.requests.Load() != 0 {
		t.Errorf("token good after a flood: got authenticated %t, %d requests; want authenticated true, no requests", ok, f.requests.Load())
	}
	if n := r.conn.Load().tokens.negative.Len(); n != maxCachedResults {
		t.Errorf("got %d cached unknown tokens, want %d", n, maxCachedResults)
	}
}

// TestReviews_Contradiction checks that a review that is both allowed and denied does not allow the
// request.
func TestReviews_Contradiction(t *testing.T) {
	r := newTestReviews(t, &reviewer{}, slog.New(slog.DiscardHandler))
	both := pods
	both.Namespace = "both"
	if allowed, err := r.Allows(t.Context(), ann, both); allowed || !errors.Is(err, errContradiction) {
		t.Errorf("got allowed %t, error %v; want false, %v", allowed, err, errContradiction)
	}
}
