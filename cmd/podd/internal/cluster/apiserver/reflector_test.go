package apiserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
)

// A testReflector runs a Reflector of the pods of the Node n1.
type testReflector struct {
	*clustertest.API
	pods apiserver.Store[*v1.Pod]
	mu   sync.Mutex // guards errs
	errs []error    // the errors that were reported
}

// runReflector starts a Reflector in a synctest bubble, lets 2 s pass and calls test. prepare may be nil.
func runReflector(t *testing.T, prepare, test func(*testReflector)) {
	synctest.Test(t, func(t *testing.T) {
		r := &testReflector{API: &clustertest.API{Version: 1}}
		if prepare != nil {
			prepare(r)
		}
		client := clustertest.NewClient(t, r.API, apiserver.Options{QPS: 50, Burst: 100})
		f := apiserver.Reflector[*v1.Pod]{Client: client, Query: client.PodsQuery("n1"), EmptyList: &v1.PodList{}, Publish: r.pods.Set, Report: func(_ context.Context, err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if err != nil {
				r.errs = append(r.errs, err)
			}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var part sync.WaitGroup
		part.Go(func() { f.Run(ctx) })
		clustertest.Advance(2 * time.Second)
		test(r)
		cancel()
		part.Wait()
	})
}

// addPod adds the pod a.
func addPod(r *testReflector) { r.PutPod(clustertest.NewBoundPod("a", "1"), "ADDED") }

// reported returns all errors that were reported.
func (r *testReflector) reported() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs
}

// TestReflector checks that a reflector publishes a new snapshot after each watch event, and after the
// list that follows an interrupted watch. Earlier snapshots must not change.
func TestReflector(t *testing.T) {
	runReflector(t, nil, func(r *testReflector) {
		first, changed := r.pods.Get()
		if first.ListCount != 1 || len(first.Items) > 0 {
			t.Fatalf("after the first list: got snapshot %v, want one without pods", first)
		}
		r.Change(func() { r.PutPod(clustertest.NewBoundPod("a", "1"), "ADDED") })
		r.Change(func() { r.PutPod(clustertest.NewBoundPod("b", "1"), "ADDED") })
		r.Change(func() { r.PutPod(clustertest.NewBoundPod("a", "2"), "MODIFIED") })
		<-changed
		two, _ := r.pods.Get()
		a := two.Items[apiserver.ObjectKey(clustertest.NewBoundPod("a", ""))]
		if len(first.Items) > 0 || len(two.Items) != 2 || a.Spec.Containers[0].Image != "2" || a.ManagedFields != nil {
			t.Fatalf("after three watch events: got snapshot %v, first snapshot %v; want pods a (image 2) and b without managed fields, and no pods in the first snapshot", two, first)
		}
		r.Change(func() { r.InterruptWatches(); r.PutPod(clustertest.NewBoundPod("a", "2"), "DELETED") })
		clustertest.Advance(time.Minute)
		one, _ := r.pods.Get()
		if len(two.Items) != 2 || len(one.Items) != 1 || one.ListCount != 2 {
			t.Errorf("after an interrupted watch: got snapshot %v, previous snapshot %v; want 1 pod from a second list, and still 2 pods in the previous snapshot", one, two)
		}
		r.Change(func() { r.PutPod(clustertest.NewBoundPod("b", "1"), "DELETED") })
		if none, _ := r.pods.Get(); len(none.Items) > 0 {
			t.Errorf("after a watch event of the deletion: got snapshot %v, want no pods", none)
		}
	})
}

// TestReflector_Interrupted checks that podd lists the pods again if a watch ends before the requested
// time, because the API server may have lost its data.
func TestReflector_Interrupted(t *testing.T) {
	for name, err := range map[string]error{"unexpected EOF": io.ErrUnexpectedEOF, "connection reset": syscall.ECONNRESET, "EOF": io.EOF} {
		runReflector(t, addPod, func(r *testReflector) {
			r.Change(func() { // the API server loses its data
				r.EndWatches(err)
				r.ForgetChanges()
				r.Pods, r.Version = nil, 1
			})
			clustertest.Advance(time.Second)
			if now, _ := r.pods.Get(); len(now.Items) > 0 || now.ListCount != 2 {
				t.Errorf("%s: got snapshot %+v, want one without pods from a second list", name, now)
			}
			if errs := r.reported(); len(errs) > 0 {
				t.Errorf("%s: got reported errors %v, want none", name, errs)
			}
			r.CountRequests()
			clustertest.Advance(2*apiserver.WatchTimeout + time.Minute)
			if n := r.CountRequests("GET pods", "WATCH pods"); n[0] > 0 || n[1] == 0 {
				t.Errorf("%s, after the second list: got %d lists, %d watches; want only watches", name, n[0], n[1])
			}
		})
	}
}

// TestReflector_Expired checks that podd lists the pods again if the API server rejects the resource version
// of a watch as too old, and that podd reports no problem.
func TestReflector_Expired(t *testing.T) {
	hasExpired := false // used only by the requests, which are sequential
	expire := func(r *testReflector) {
		r.Fault = func(q *http.Request) (*http.Response, error) {
			if q.URL.Query().Get("watch") == "" || hasExpired {
				return nil, nil
			}
			hasExpired = true
			return clustertest.ErrorResponse(apierrors.NewResourceExpired("too old resource version")), nil
		}
	}
	runReflector(t, expire, func(r *testReflector) {
		if now, _ := r.pods.Get(); now.ListCount != 2 {
			t.Errorf("after an expired watch: got snapshot %+v, want one from a second list", now)
		}
		r.Change(func() { r.PutPod(clustertest.NewBoundPod("a", "1"), "ADDED") })
		if now, _ := r.pods.Get(); len(now.Items) != 1 {
			t.Errorf("after the next watch reported a pod: got snapshot %+v, want 1 pod", now)
		}
		if errs := r.reported(); len(errs) > 0 {
			t.Errorf("got reported errors %v, want none", errs)
		}
	})
}

// TestReflector_IncompleteList checks that podd keeps the pods of the first list if the next list is
// incomplete, for example because of a proxy.
func TestReflector_IncompleteList(t *testing.T) {
	for name, list := range map[string]string{
		"no version":     `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`,
		"empty object":   `{}`,
		"part of a list": `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"more"},"items":[]}`,
	} {
		runReflector(t, addPod, func(r *testReflector) {
			r.Change(func() {
				r.InterruptWatches()
				r.Fault = func(q *http.Request) (*http.Response, error) {
					if !strings.HasSuffix(q.URL.Path, "/pods") {
						return nil, nil
					}
					return &http.Response{StatusCode: 200, Header: clustertest.JSONType, Body: io.NopCloser(strings.NewReader(list))}, nil
				}
			})
			clustertest.Advance(time.Minute)
			if now, _ := r.pods.Get(); len(now.Items) != 1 || now.ListCount != 1 {
				t.Errorf("%s: got snapshot %+v, want the pod of the first list", name, now)
			}
		})
	}
}

// TestReflector_OverdueWatch checks that podd cancels a watch that does not end after the requested
// time, for example because of a proxy. The next watch must then report changes.
func TestReflector_OverdueWatch(t *testing.T) {
	hang := func(r *testReflector) {
		r.Fault = func(q *http.Request) (*http.Response, error) {
			if q.URL.Query().Get("watch") == "" {
				return nil, nil
			}
			r, w := io.Pipe()
			context.AfterFunc(q.Context(), func() { w.CloseWithError(q.Context().Err()) })
			return &http.Response{StatusCode: 200, Header: clustertest.JSONType, Body: r}, nil
		}
	}
	runReflector(t, hang, func(r *testReflector) {
		clustertest.Advance(time.Minute)
		r.Change(func() { r.Fault = nil; r.PutPod(clustertest.NewBoundPod("a", "1"), "ADDED") })
		clustertest.Advance(2*apiserver.WatchTimeout + apiserver.RequestTimeout)
		if now, _ := r.pods.Get(); len(now.Items) != 1 {
			t.Errorf("after the overdue watches: got snapshot %v, want 1 pod", now)
		}
		if errs := r.reported(); len(errs) > 0 {
			t.Errorf("got reported errors %v, want none", errs)
		}
	})
}

// TestReflector_ShortWatches checks that podd sends few requests if a proxy ends every watch at once, and
// reports this.
func TestReflector_ShortWatches(t *testing.T) {
	prepare := func(r *testReflector) {
		r.Fault = func(q *http.Request) (*http.Response, error) {
			if q.URL.Query().Get("watch") != "" {
				return &http.Response{StatusCode: 200, Header: clustertest.JSONType, Body: http.NoBody}, nil
			}
			return nil, nil
		}
	}
	runReflector(t, prepare, func(r *testReflector) {
		r.CountRequests()
		clustertest.Advance(10 * time.Minute)
		if n := r.CountRequests("WATCH pods"); n[0] == 0 || n[0] > 300 {
			t.Errorf("got %d watches in ten minutes, want 1 to 300", n[0])
		}
		if errs := r.reported(); len(errs) == 0 || !strings.Contains(errs[0].Error(), "check whether a proxy") {
			t.Errorf("got reported errors %v, want some with the remedy", errs)
		}
	})
}

// TestReflector_Last checks that a Reflector continues the count of an earlier one.
func TestReflector_Last(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pods apiserver.Store[*v1.Pod]
		client := clustertest.NewClient(t, &clustertest.API{Version: 1}, apiserver.Options{})
		f := apiserver.Reflector[*v1.Pod]{
			Client: client, Query: client.PodsQuery("n1"), EmptyList: &v1.PodList{}, Last: apiserver.Snapshot[*v1.Pod]{ListCount: 3}, Publish: pods.Set, Report: func(context.Context, error) {},
		}
		ctx, cancel := context.WithCancel(t.Context())
		var part sync.WaitGroup
		part.Go(func() { f.Run(ctx) })
		synctest.Wait()
		if s, _ := pods.Get(); s.ListCount != 4 {
			t.Errorf("got list count %d, want 4", s.ListCount)
		}
		cancel()
		part.Wait()
	})
}
