package cluster

import (
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
)

// TestReflector checks that a reflector publishes a new snapshot after each watch event, and after the
// list that follows an interrupted watch. Earlier snapshots must not change.
func TestReflector(t *testing.T) {
	runNode(t, nil, func(l *testNode) {
		first, changed := l.cluster.pods.Get()
		if first.ListCount != 1 || len(first.Items) > 0 {
			t.Fatalf("after the first list: got snapshot %v, want one without pods", first)
		}
		l.change(func() { l.putPod(clustertest.NewBoundPod("a", "1"), "ADDED") })
		l.change(func() { l.putPod(clustertest.NewBoundPod("b", "1"), "ADDED") })
		l.change(func() { l.putPod(clustertest.NewBoundPod("a", "2"), "MODIFIED") })
		<-changed
		two, _ := l.cluster.pods.Get()
		a := two.Items[apiserver.ObjectKey(clustertest.NewBoundPod("a", ""))]
		if len(first.Items) > 0 || len(two.Items) != 2 || a.Spec.Containers[0].Image != "2" || a.ManagedFields != nil {
			t.Fatalf("after three watch events: got snapshot %v, first snapshot %v; want pods a (image 2) and b without managed fields, and no pods in the first snapshot", two, first)
		}
		l.change(func() { l.interruptWatches(); l.putPod(clustertest.NewBoundPod("a", "2"), "DELETED") })
		l.advance(time.Minute)
		one, _ := l.cluster.pods.Get()
		if len(two.Items) != 2 || len(one.Items) != 1 || one.ListCount != 2 {
			t.Errorf("after an interrupted watch: got snapshot %v, previous snapshot %v; want 1 pod from a second list, and still 2 pods in the previous snapshot", one, two)
		}
		l.change(func() { l.putPod(clustertest.NewBoundPod("b", "1"), "DELETED") })
		if none, _ := l.cluster.pods.Get(); len(none.Items) > 0 {
			t.Errorf("after a watch event of the deletion: got snapshot %v, want no pods", none)
		}
	})
}

// TestReflector_Interrupted checks that podd lists the pods again if a watch ends before the requested
// time, because the API server may have lost its data.
func TestReflector_Interrupted(t *testing.T) {
	for name, err := range map[string]error{"unexpected EOF": io.ErrUnexpectedEOF, "connection reset": syscall.ECONNRESET, "EOF": io.EOF} {
		runNode(t, func(l *testNode, _ *Options) { l.fakeAPI.putPod(clustertest.NewBoundPod("a", "1"), "ADDED") }, func(l *testNode) {
			l.change(func() { // the API server loses its data
				for _, w := range l.watches {
					w.CloseWithError(err)
				}
				l.watches, l.pods, l.changes, l.version = nil, nil, nil, 1
			})
			l.advance(time.Second)
			if now, _ := l.cluster.pods.Get(); len(now.Items) > 0 || now.ListCount != 2 {
				t.Errorf("%s: got snapshot %+v, want one without pods from a second list", name, now)
			}
			if problems := l.takeProblems(); len(problems) > 0 {
				t.Errorf("%s: got problems %q, want none", name, problems)
			}
			l.countRequests()
			l.advance(2*apiserver.WatchTimeout + time.Minute)
			if n := l.countRequests("GET pods", "WATCH pods"); n[0] > 0 || n[1] == 0 {
				t.Errorf("%s, after the second list: got %d lists, %d watches; want only watches", name, n[0], n[1])
			}
		})
	}
}

// TestReflector_Expired checks that podd lists the pods again if the API server rejects the resource version
// of a watch as too old, and that podd reports no problem.
func TestReflector_Expired(t *testing.T) {
	hasExpired := false // used only by the requests for pods, which are sequential
	expire := func(l *testNode, _ *Options) {
		l.fault = func(q *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(q.URL.Path, "/pods") || q.URL.Query().Get("watch") == "" || hasExpired {
				return nil, nil
			}
			hasExpired = true
			return clustertest.ErrorResponse(apierrors.NewResourceExpired("too old resource version")), nil
		}
	}
	runNode(t, expire, func(l *testNode) {
		if now, _ := l.cluster.pods.Get(); now.ListCount != 2 {
			t.Errorf("after an expired watch: got snapshot %+v, want one from a second list", now)
		}
		l.change(func() { l.putPod(clustertest.NewBoundPod("a", "1"), "ADDED") })
		if now, _ := l.cluster.pods.Get(); len(now.Items) != 1 {
			t.Errorf("after the next watch reported a pod: got snapshot %+v, want 1 pod", now)
		}
		if problems := l.takeProblems(); len(problems) > 0 {
			t.Errorf("got problems %q, want none", problems)
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
		runNode(t, func(l *testNode, _ *Options) { l.fakeAPI.putPod(clustertest.NewBoundPod("a", "1"), "ADDED") }, func(l *testNode) {
			l.change(func() {
				l.interruptWatches()
				l.fault = func(q *http.Request) (*http.Response, error) {
					if !strings.HasSuffix(q.URL.Path, "/pods") {
						return nil, nil
					}
					return &http.Response{StatusCode: 200, Header: clustertest.JSONType, Body: io.NopCloser(strings.NewReader(list))}, nil
				}
			})
			l.advance(time.Minute)
			if now, _ := l.cluster.pods.Get(); len(now.Items) != 1 || now.ListCount != 1 {
				t.Errorf("%s: got snapshot %+v, want the pod of the first list", name, now)
			}
		})
	}
}

// TestReflector_OverdueWatch checks that podd cancels a watch that does not end after the requested
// time, for example because of a proxy. The next watch must then report changes.
func TestReflector_OverdueWatch(t *testing.T) {
	hang := func(l *testNode, _ *Options) {
		l.fault = func(q *http.Request) (*http.Response, error) {
			if q.URL.Query().Get("watch") == "" {
				return nil, nil
			}
			r, w := io.Pipe()
			context.AfterFunc(q.Context(), func() { w.CloseWithError(q.Context().Err()) })
			return &http.Response{StatusCode: 200, Header: clustertest.JSONType, Body: r}, nil
		}
	}
	runNode(t, hang, func(l *testNode) {
		l.advance(time.Minute)
		l.change(func() { l.fault = nil; l.putPod(clustertest.NewBoundPod("a", "1"), "ADDED") })
		l.advance(2*apiserver.WatchTimeout + apiserver.RequestTimeout)
		if now, _ := l.cluster.pods.Get(); len(now.Items) != 1 {
			t.Errorf("after the overdue watches: got snapshot %v, want 1 pod", now)
		}
		if problems := l.takeProblems(); len(problems) > 0 {
			t.Errorf("got problems %q, want none", problems)
		}
	})
}
