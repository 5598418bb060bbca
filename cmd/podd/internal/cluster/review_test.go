package cluster

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
	"k8s.io/client-go/rest"

	"podd/server/auth"
)

// A reviewer is an API server with reviews only.
type reviewer struct {
	requests    atomic.Int32 // number of requests
	unreachable atomic.Bool
	delay       time.Duration // time until a response is sent
}

// RoundTrip implements http.RoundTripper. The token "good" belongs to the user ann, who may get
// nodes/pods.
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
		r := mustDecode[authentication.TokenReview](body.Bytes())
		r.TypeMeta = metav1.TypeMeta{Kind: "TokenReview", APIVersion: "authentication.k8s.io/v1"}
		if r.Spec.Token == "good" {
			r.Status = authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{
				Username: "ann", UID: "7", Groups: []string{"ops"}, Extra: map[string]authentication.ExtraValue{"a": {"b"}},
			}}
		}
		return response(201, r), nil
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		r := mustDecode[authorization.SubjectAccessReview](body.Bytes())
		r.TypeMeta = metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}
		a := r.Spec.ResourceAttributes
		r.Status.Allowed = r.Spec.User == "ann" && r.Spec.UID == "7" && r.Spec.Extra["a"][0] == "b" && a != nil &&
			a.Verb == "get" && a.Version == "v1" && a.Resource == "nodes" && a.Name == "n1" && a.Subresource == "pods"
		r.Status.Denied = r.Status.Allowed && a.Namespace == "both"
		return response(201, r), nil
	}
	return errorResponse(apierrors.NewBadRequest(q.URL.Path)), nil
}

// newTestReviews returns Reviews that are connected to f.
func newTestReviews(t *testing.T, f *reviewer, log *slog.Logger) *Reviews {
	t.Helper()
	c := &client{host: "https://api", closeConnections: func() {}}
	o := &Options{QPS: 5000, Burst: 5000}
	if err := c.initRESTClients(&rest.Config{Host: "http://api", Transport: f, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, o); err != nil {
		t.Fatal(err)
	}
	r := newReviews(ReviewOptions{TokenTTL: 2 * time.Minute, AllowedTTL: 5 * time.Minute, DeniedTTL: 30 * time.Second}, log)
	if _, err := r.Allows(t.Context(), auth.User{Name: "ann"}, pods); !errors.Is(err, errNotConnected) {
		t.Errorf("before the connection: got %v, want %v", err, errNotConnected)
	}
	r.setClient(c)
	return r
}

var (
	ann  = auth.User{Name: "ann", UID: "7", Groups: []string{"ops"}, Extra: map[string][]string{"a": {"b"}}}
	pods = auth.Attributes{Verb: "get", Resource: "nodes", Name: "n1", Subresources: []string{"pods", "proxy"}}
)

// TestReviews_Cache checks that results are cached for the configured durations, also in an outage,
// and dropped for a new connection.
func TestReviews_Cache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, log := &reviewer{}, &bytes.Buffer{}
		r := newTestReviews(t, f, slog.New(slog.NewTextHandler(log, nil)))
		exec := auth.Attributes{Verb: "create", Resource: "nodes", Name: "n1", Subresources: []string{"proxy"}}
		check := func(step string, user, allowed, execAllowed, execFails bool, requests int32) {
			t.Helper()
			f.requests.Store(0)
			u, ok := r.Authenticate(t.Context(), "good")
			if ok != user || ok && (u.Name != "ann" || u.UID != "7" || u.Extra["a"][0] != "b") {
				t.Errorf("%s: token good: got %v, %t, want %t", step, u, ok, user)
			}
			if u, ok := r.Authenticate(t.Context(), "bad"); ok {
				t.Errorf("%s: token bad: got %v, want none", step, u)
			}
			a, err := r.Allows(t.Context(), ann, pods)
			b, err2 := r.Allows(t.Context(), ann, exec)
			if a != allowed || b != execAllowed || (err2 != nil) != execFails || err != nil && a {
				t.Errorf("%s: got pods %t, %v; exec %t, %v", step, a, err, b, err2)
			}
			if n := f.requests.Load(); n != requests {
				t.Errorf("%s: got %d requests, want %d", step, n, requests)
			}
		}
		check("first", true, true, false, false, 4)
		check("second", true, true, false, false, 0)
		time.Sleep(31 * time.Second) // negative results expire
		check("after 31 s", true, true, false, false, 2)
		f.unreachable.Store(true)
		check("unreachable", true, true, false, false, 0) // the results of less than 10 s ago are still cached
		time.Sleep(2 * time.Minute)
		check("unreachable for 2 min", false, true, false, true, 3)
		time.Sleep(3 * time.Minute)
		check("unreachable for 5 min", false, false, false, true, 4)
		f.unreachable.Store(false)
		check("reachable", true, true, false, false, 4)
		r.setClient(r.conn.Load().client)
		check("new connection", true, true, false, false, 4)
		if n := strings.Count(log.String(), "\n"); n != 3 || strings.Contains(log.String(), "good") || strings.Contains(log.String(), "bad") {
			t.Errorf("got %d log lines, want 3 without tokens:\n%s", n, log)
		}
	})
}

// TestReviews_Concurrent checks that concurrent equal reviews share a request, even if the context
// of the first caller ends.
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
					t.Error("token good: got no user")
				}
			})
		}
		all.Wait()
		if n := f.requests.Load(); n != 1 {
			t.Errorf("got %d requests, want 1", n)
		}
	})
}

// TestReviews_NewConnection checks that a result of the previous connection is not cached for the
// new connection.
func TestReviews_NewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &reviewer{delay: time.Second}
		r := newTestReviews(t, f, slog.New(slog.DiscardHandler))
		var calls sync.WaitGroup
		calls.Go(func() { r.Authenticate(t.Context(), "good") })
		synctest.Wait()
		r.setClient(r.conn.Load().client)
		calls.Wait()
		f.unreachable.Store(true)
		if u, ok := r.Authenticate(t.Context(), "good"); ok {
			t.Errorf("token good: got %v, want none", u)
		}
	})
}

// TestReviews_Flood checks that the number of cached unknown tokens is limited, and that unknown
// tokens do not evict valid tokens.
func TestReviews_Flood(t *testing.T) {
	f := &reviewer{}
	r := newTestReviews(t, f, slog.New(slog.DiscardHandler))
	r.Authenticate(t.Context(), "good")
	for i := range 3 * maxCachedResults {
		r.Authenticate(t.Context(), fmt.Sprint("bad", i))
	}
	f.requests.Store(0)
	if _, ok := r.Authenticate(t.Context(), "good"); !ok || f.requests.Load() != 0 {
		t.Errorf("token good: got %t after %d requests, want true after none", ok, f.requests.Load())
	}
	if n := r.conn.Load().tokens.negative.Len(); n != maxCachedResults {
		t.Errorf("got %d cached unknown tokens, want %d", n, maxCachedResults)
	}
	both := pods
	both.Namespace = "both"
	if allowed, err := r.Allows(t.Context(), ann, both); allowed || !errors.Is(err, errContradiction) {
		t.Errorf("allowed and denied: got %t, %v; want false, %v", allowed, err, errContradiction)
	}
}
