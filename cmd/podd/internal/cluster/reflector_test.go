package cluster

import (
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func bound(name, image string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "test"}}},
		Spec:       v1.PodSpec{NodeName: "n1", Containers: []v1.Container{{Name: "app", Image: image}}},
	}
}

// What the cluster has is seen as it changes, whole, and again after an outage, in
// which it stays as it was.
func TestFollow(t *testing.T) {
	alone(t, nil, func(l *life) {
		first, changed := l.cluster.pods.get()
		if first.lists != 1 || len(first.items) > 0 {
			t.Fatalf("at first: got %v", first)
		}
		l.with(func() { l.putPod(bound("a", "1"), "ADDED") })
		l.with(func() { l.putPod(bound("b", "1"), "ADDED") })
		l.with(func() { l.putPod(bound("a", "2"), "MODIFIED") })
		<-changed
		two, _ := l.cluster.pods.get()
		a := two.items[keyOf(bound("a", ""))]
		if len(first.items) > 0 || len(two.items) != 2 || a.Spec.Containers[0].Image != "2" || a.ManagedFields != nil {
			t.Fatalf("two pods: got %v, before %v", two, first)
		}
		l.with(func() { l.cut(); l.putPod(bound("a", "2"), "DELETED") })
		l.after(time.Minute)
		one, _ := l.cluster.pods.get()
		if len(two.items) != 2 || len(one.items) != 1 || one.lists != 2 {
			t.Errorf("after an outage: got %v, before %v", one, two)
		}
		l.with(func() { l.putPod(bound("b", "1"), "DELETED") })
		if none, _ := l.cluster.pods.get(); len(none.items) > 0 {
			t.Errorf("deleted: got %v", none)
		}
	})
}

// A watch that ends before its time is followed by a list: who answers the next may
// have lost what it had, and takes any version.
func TestFollowCut(t *testing.T) {
	for note, err := range map[string]error{"cut": io.ErrUnexpectedEOF, "reset": syscall.ECONNRESET, "ended": io.EOF} {
		alone(t, func(l *life, _ *Options) { l.fakeAPI.putPod(bound("a", "1"), "ADDED") }, func(l *life) {
			l.with(func() {
				for _, w := range l.watches {
					w.CloseWithError(err)
				}
				l.watches, l.pods, l.changed, l.version = nil, nil, nil, 1
			})
			l.after(time.Second)
			if now, _ := l.cluster.pods.get(); len(now.items) > 0 || now.lists != 2 {
				t.Errorf("%s: got %+v", note, now)
			}
			if said := l.heard(); len(said) > 0 {
				t.Errorf("%s: told %q", note, said)
			}
			l.count()
			l.after(2*watchTime + time.Minute)
			if n := l.count("GET pods", "WATCH pods"); n[0] > 0 || n[1] == 0 {
				t.Errorf("%s, then not: listed %d times, watched %d times", note, n[0], n[1])
			}
		})
	}
}

// What is no whole list, as of a proxy that answers for the API server, ends nothing.
func TestFollowWhole(t *testing.T) {
	for note, text := range map[string]string{
		"of nobody": `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`,
		"bare":      `{}`,
		"a part":    `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"more"},"items":[]}`,
	} {
		alone(t, func(l *life, _ *Options) { l.fakeAPI.putPod(bound("a", "1"), "ADDED") }, func(l *life) {
			l.with(func() {
				l.cut()
				l.fault = func(q *http.Request) (*http.Response, error) {
					if !strings.HasSuffix(q.URL.Path, "/pods") {
						return nil, nil
					}
					return &http.Response{StatusCode: 200, Header: jsonType, Body: io.NopCloser(strings.NewReader(text))}, nil
				}
			})
			l.after(time.Minute)
			if now, _ := l.cluster.pods.get(); len(now.items) != 1 || now.lists != 1 {
				t.Errorf("%s: got %+v", note, now)
			}
		})
	}
}

// A watch that is never ended, as of a proxy whose API server hangs, is given up.
func TestFollowEndless(t *testing.T) {
	hangs := func(l *life, _ *Options) {
		l.fault = func(q *http.Request) (*http.Response, error) {
			if q.URL.Query().Get("watch") == "" {
				return nil, nil
			}
			r, w := io.Pipe()
			context.AfterFunc(q.Context(), func() { w.CloseWithError(q.Context().Err()) })
			return &http.Response{StatusCode: 200, Header: jsonType, Body: r}, nil
		}
	}
	alone(t, hangs, func(l *life) {
		l.after(time.Minute)
		l.with(func() { l.fault = nil; l.putPod(bound("a", "1"), "ADDED") })
		l.after(2*watchTime + requestTime)
		if now, _ := l.cluster.pods.get(); len(now.items) != 1 {
			t.Errorf("got %v", now)
		}
		if said := l.heard(); len(said) > 0 {
			t.Errorf("users were told %q", said)
		}
	})
}
