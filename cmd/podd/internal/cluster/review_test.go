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

// reviewer answers reviews, and counts them.
type reviewer struct {
	asked atomic.Int32
	away  atomic.Bool
	wait  time.Duration
}

// RoundTrip implements http.RoundTripper: the token "good" is somebody's, and nodes/pods
// is for those who get it.
func (f *reviewer) RoundTrip(q *http.Request) (*http.Response, error) {
	f.asked.Add(1)
	time.Sleep(f.wait)
	if f.away.Load() {
		return nil, errors.New("dial: refused")
	}
	body := new(bytes.Buffer)
	if _, err := body.ReadFrom(q.Body); err != nil {
		return nil, err
	}
	switch q.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		r := parsed[authentication.TokenReview](body.Bytes())
		r.TypeMeta = metav1.TypeMeta{Kind: "TokenReview", APIVersion: "authentication.k8s.io/v1"}
		if r.Spec.Token == "good" {
			r.Status = authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{
				Username: "ann", UID: "7", Groups: []string{"ops"}, Extra: map[string]authentication.ExtraValue{"a": {"b"}},
			}}
		}
		return answer(201, r), nil
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		r := parsed[authorization.SubjectAccessReview](body.Bytes())
		r.TypeMeta = metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}
		a := r.Spec.ResourceAttributes
		r.Status.Allowed = r.Spec.User == "ann" && r.Spec.UID == "7" && r.Spec.Extra["a"][0] == "b" && a != nil &&
			a.Verb == "get" && a.Version == "v1" && a.Resource == "nodes" && a.Name == "n1" && a.Subresource == "pods"
		r.Status.Denied = r.Status.Allowed && a.Namespace == "both"
		return answer(201, r), nil
	}
	return refusal(apierrors.NewBadRequest(q.URL.Path)), nil
}

// reviews asks f through a client of its own.
func reviews(t *testing.T, f *reviewer, log *slog.Logger) *Reviews {
	t.Helper()
	c := &client{host: "https://api", close: func() {}}
	o := &Options{QPS: 5000, Burst: 5000}
	if err := c.open(&rest.Config{Host: "http://api", Transport: f, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, o); err != nil {
		t.Fatal(err)
	}
	r := newReviews(ReviewOptions{Tokens: 2 * time.Minute, Allowed: 5 * time.Minute, Denied: 30 * time.Second}, log)
	if _, err := r.Allows(t.Context(), auth.User{Name: "ann"}, pods); !errors.Is(err, errNotYet) {
		t.Errorf("before there is a cluster: %v", err)
	}
	r.use(c)
	return r
}

var (
	ann  = auth.User{Name: "ann", UID: "7", Groups: []string{"ops"}, Extra: map[string][]string{"a": {"b"}}}
	pods = auth.Attributes{Verb: "get", Resource: "nodes", Name: "n1", Subresources: []string{"pods", "proxy"}}
)

// What the cluster said counts for its time, also while it is away, and no longer.
func TestReviewsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, log := &reviewer{}, &bytes.Buffer{}
		r := reviews(t, f, slog.New(slog.NewTextHandler(log, nil)))
		exec := auth.Attributes{Verb: "create", Resource: "nodes", Name: "n1", Subresources: []string{"proxy"}}
		look := func(step string, user, may, mayExec, unsure bool, asked int32) {
			t.Helper()
			f.asked.Store(0)
			u, ok := r.User(t.Context(), "good")
			if ok != user || ok && (u.Name != "ann" || u.UID != "7" || u.Extra["a"][0] != "b") {
				t.Errorf("%s: good is %v, %t", step, u, ok)
			}
			if u, ok := r.User(t.Context(), "bad"); ok {
				t.Errorf("%s: bad is %v", step, u)
			}
			a, err := r.Allows(t.Context(), ann, pods)
			b, err2 := r.Allows(t.Context(), ann, exec)
			if a != may || b != mayExec || (err2 != nil) != unsure || err != nil && a {
				t.Errorf("%s: may look %t, %v; may exec %t, %v", step, a, err, b, err2)
			}
			if n := f.asked.Load(); n != asked {
				t.Errorf("%s: asked %d times, want %d", step, n, asked)
			}
		}
		look("first", true, true, false, false, 4)
		look("again", true, true, false, false, 0)
		time.Sleep(31 * time.Second)                    // a refusal is over
		look("after 31 s", true, true, false, false, 2) // and so is that bad is nobody's
		f.away.Store(true)
		look("away", true, true, false, false, 0) // bad is nobody's for 10 s
		time.Sleep(2 * time.Minute)
		look("away after 2 min", false, true, false, true, 3)
		time.Sleep(3 * time.Minute)
		look("away after 5 min", false, false, false, true, 4)
		f.away.Store(false)
		look("back", true, true, false, false, 4)
		r.use(r.now.Load().client)
		look("another cluster", true, true, false, false, 4)
		if n := strings.Count(log.String(), "\n"); n != 3 || strings.Contains(log.String(), "good") || strings.Contains(log.String(), "bad") {
			t.Errorf("the log has %d lines:\n%s", n, log)
		}
	})
}

// Many who ask the same are one request, also when the first of them leaves.
func TestReviewsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &reviewer{wait: time.Second}
		r := reviews(t, f, slog.New(slog.DiscardHandler))
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Millisecond)
				defer cancel()
				if _, ok := r.User(ctx, "good"); !ok {
					t.Error("good is nobody's")
				}
			})
		}
		all.Wait()
		if n := f.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// What another cluster says yet is not taken for what this one does.
func TestReviewsOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &reviewer{wait: time.Second}
		r := reviews(t, f, slog.New(slog.DiscardHandler))
		var asks sync.WaitGroup
		asks.Go(func() { r.User(t.Context(), "good") })
		synctest.Wait()
		r.use(r.now.Load().client)
		asks.Wait()
		f.away.Store(true)
		if u, ok := r.User(t.Context(), "good"); ok {
			t.Errorf("good is %v", u)
		}
	})
}

// Tokens that somebody makes up take no more room than a few, and none of those that count.
func TestReviewsFlood(t *testing.T) {
	f := &reviewer{}
	r := reviews(t, f, slog.New(slog.DiscardHandler))
	r.User(t.Context(), "good")
	for i := range 3 * maxCached {
		r.User(t.Context(), fmt.Sprint("bad", i))
	}
	f.asked.Store(0)
	if _, ok := r.User(t.Context(), "good"); !ok || f.asked.Load() != 0 {
		t.Errorf("good: %t, asked %d times", ok, f.asked.Load())
	}
	if n := r.now.Load().tokens.negative.Len(); n != maxCached {
		t.Errorf("%d are kept", n)
	}
	both := pods
	both.Namespace = "both"
	if may, err := r.Allows(t.Context(), ann, both); may || !errors.Is(err, errBoth) {
		t.Errorf("allowed and denied: %t, %v", may, err)
	}
}
