package kube

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// events are what a watch tells, each as "ADDED web-n1 1001".
type events struct {
	t     *testing.T
	lines *bufio.Scanner
}

func watching(t *testing.T, url, query string) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", url+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != 200 {
		t.Fatalf("%s: %s", query, answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return &events{t, lines}
}

func (e *events) want(all ...string) {
	e.t.Helper()
	for _, want := range all {
		if got := e.next(); got != want {
			e.t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func (e *events) next() string {
	if !e.lines.Scan() {
		return "end"
	}
	var got struct {
		Type   string
		Object struct {
			Kind, Message string
			Metadata      metav1.ObjectMeta
		}
	}
	if err := json.Unmarshal(e.lines.Bytes(), &got); err != nil {
		e.t.Fatalf("%v: %s", err, e.lines.Bytes())
	}
	m := got.Object.Metadata
	switch {
	case got.Object.Kind == "Status":
		return got.Type + " " + got.Object.Message
	case m.Annotations[metav1.InitialEventsAnnotationKey] == "true":
		return got.Type + " end of initial " + m.ResourceVersion
	}
	return strings.Join(strings.Fields(got.Type+" "+m.Name+" "+m.ResourceVersion), " ")
}

func TestWatch(t *testing.T) {
	n := newNode()
	s := httptest.NewServer(n.api().Handler())
	t.Cleanup(s.Close)
	const pods = "/api/v1/pods?watch=true"
	ask(t, s.Config.Handler, "GET", "/api/v1/pods", "", "") // revisions 1001 and 1002
	plain := watching(t, s.URL, pods)
	plain.want("ADDED web-n1 1001", "ADDED two-n1 1002")
	since := watching(t, s.URL, pods+"&resourceVersion=1002")
	list := watching(t, s.URL, pods+"&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan")
	list.want("ADDED web-n1 1001", "ADDED two-n1 1002", "BOOKMARK end of initial 1002")
	labelled := watching(t, s.URL, pods+"&labelSelector=app%3Dnew")
	one := watching(t, s.URL, "/api/v1/namespaces/shop/pods?watch=true&fieldSelector=metadata.name%3Dtwo-n1")
	one.want("ADDED two-n1 1002")

	added := pod("default", "new-n1", "3")
	n.put(added)
	failed := added.DeepCopy()
	failed.Status.Phase = v1.PodFailed
	plain.want("ADDED new-n1 1003") // so that what follows is a change of its own
	n.put(failed)
	plain.want("MODIFIED new-n1 1004")
	other := failed.DeepCopy()
	other.Labels = map[string]string{"app": "old"}
	n.put(other)
	plain.want("MODIFIED new-n1 1005")
	n.put(other.DeepCopy()) // nothing is another
	another := pod("default", "new-n1", "4")
	n.put(another)
	plain.want("DELETED new-n1 1006", "ADDED new-n1 1007")
	n.drop("new-n1")
	plain.want("DELETED new-n1 1008")
	n.drop("two-n1")
	plain.want("DELETED two-n1 1009")

	labelled.want("ADDED new-n1 1003", "MODIFIED new-n1 1004", "DELETED new-n1 1005", "ADDED new-n1 1007", "DELETED new-n1 1008")
	one.want("DELETED two-n1 1009")
	for _, e := range []*events{since, list} {
		e.want("ADDED new-n1 1003", "MODIFIED new-n1 1004", "MODIFIED new-n1 1005", "DELETED new-n1 1006", "ADDED new-n1 1007", "DELETED new-n1 1008", "DELETED two-n1 1009")
	}
	watching(t, s.URL, pods+"&resourceVersion=1006").want("ADDED new-n1 1007", "DELETED new-n1 1008", "DELETED two-n1 1009")
	ended := watching(t, s.URL, pods+"&resourceVersion=1009&timeoutSeconds=1&allowWatchBookmarks=1")
	ended.want("BOOKMARK 1009", "end")
}

// TestWatchForgets: who is too far behind is told so, and others are not held up.
func TestWatchForgets(t *testing.T) {
	n := newNode()
	api := n.api()
	h := api.Handler()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	ask(t, h, "GET", "/api/v1/pods", "", "")
	for i := range 4 * mostChanges {
		p := pod("default", "new-n1", "3")
		p.Annotations = map[string]string{"n": strconv.Itoa(i)}
		n.put(p)
		api.store.list(api.resources[6])
	}
	if got := len(api.store.tables[api.resources[6]].changes); got > 2*mostChanges || got < mostChanges {
		t.Errorf("%d changes are remembered", got)
	}
	if w := ask(t, h, "GET", "/api/v1/pods?watch=1&resourceVersion=1002", "", ""); w.Code != 410 || !strings.Contains(w.Body.String(), `"reason":"Expired"`) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	w := &watcher{api: api, res: api.resources[6], rev: 1002, w: httptest.NewRecorder()}
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler { // a recorder has no deadlines
				t.Errorf("got %v", p)
			}
		}()
		w.run(t.Context(), watchOptions{rev: 1002})
	}()
	now := fmt.Sprint(api.store.rev)
	watching(t, s.URL, "/api/v1/pods?watch=1&resourceVersion="+now+"&timeoutSeconds=1").want("end")
}

// TestWatchForgetsLarge: large changes are forgotten sooner, and large ones alone
// not at once.
func TestWatchForgetsLarge(t *testing.T) {
	for _, size := range []int{64 << 10, 1 << 20} {
		n := newNode()
		api := n.api()
		h := api.Handler()
		res := api.resources[6]
		api.store.list(res) // revision 1002
		large := strings.Repeat("x", size)
		for i := range 200 {
			p := pod("default", "new-n1", "3")
			p.Annotations = map[string]string{"n": strconv.Itoa(i), "x": large}
			n.put(p)
			api.store.list(res)
			if kept := api.store.tables[res]; len(kept.changes) > fewestChanges && kept.bytes > mostBytes {
				t.Fatalf("%d changes have %d bytes", len(kept.changes), kept.bytes)
			}
		}
		kept, sum := api.store.tables[res], 0
		for _, c := range kept.changes {
			sum += c.bytes
		}
		if len(kept.changes) < fewestChanges || sum != kept.bytes {
			t.Errorf("%d changes of %d bytes, counted %d", len(kept.changes), sum, kept.bytes)
		}
		if w := ask(t, h, "GET", "/api/v1/pods?watch=1&resourceVersion=1002", "", ""); w.Code != 410 {
			t.Errorf("got %d %.300s", w.Code, w.Body)
		}
		if _, _, _, known := api.store.after(res, kept.since); !known {
			t.Error("what is remembered is not known")
		}
	}
}

// TestWatchOfOthers: what is made of objects is watched as they are.
func TestWatchOfOthers(t *testing.T) {
	n := newNode()
	s := httptest.NewServer(n.api().Handler())
	t.Cleanup(s.Close)
	spaces := watching(t, s.URL, "/api/v1/namespaces?watch=1")
	nodes := watching(t, s.URL, "/api/v1/nodes?watch=1")
	secrets := watching(t, s.URL, "/api/v1/namespaces/shop/secrets?watch=1")
	for e, want := range map[*events]string{spaces: "ADDED default", nodes: "ADDED n1", secrets: "ADDED key"} {
		if got := e.next(); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	spaces.next()
	n.change(func(v *server.View) {
		v.Pods, v.Objects = nil, func() *server.Objects { return &server.Objects{} }
		v.Machine = v.Machine.DeepCopy()
		v.Machine.Status.Phase = "x"
	})
	for e, want := range map[*events]string{spaces: "DELETED shop", nodes: "MODIFIED n1", secrets: "DELETED key"} {
		if got := e.next(); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// recorded are events that others tell.
type recorded struct {
	all     []*v1.Event
	changed chan struct{}
}

func (r *recorded) Events(uint64) ([]*v1.Event, uint64) { return r.all, uint64(len(r.all)) }
func (r *recorded) Changed(uint64) <-chan struct{}      { return r.changed }

func TestWatchEvents(t *testing.T) {
	n, log := newNode(), &recorded{changed: make(chan struct{})}
	event := func(name, reason string) *v1.Event {
		return &v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: name}, Reason: reason, InvolvedObject: v1.ObjectReference{Kind: "Pod", Name: "web-n1"}}
	}
	log.all = []*v1.Event{event("b", "Started"), event("a", "Pulled")}
	api := n.api()
	api.Events = log
	h := api.Handler()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	if w := ask(t, h, "GET", "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dweb-n1,reason%3DPulled", "", ""); !strings.Contains(w.Body.String(), `"name":"a"`) || strings.Contains(w.Body.String(), `"name":"b"`) {
		t.Errorf("got %s", w.Body)
	}
	e := watching(t, s.URL, "/api/v1/events?watch=1&fieldSelector=involvedObject.kind%3DPod")
	e.want("ADDED a 1001", "ADDED b 1002")
	old := log.changed
	log.all, log.changed = append(log.all[:1:1], event("c", "Killing")), make(chan struct{})
	close(old)
	e.want("DELETED a 1003", "ADDED c 1004")
}

// BenchmarkWatchers: one change told to a hundred.
func BenchmarkWatchers(b *testing.B) {
	n := newNode()
	api := n.api()
	api.Handler()
	res := api.resources[6]
	_, rev := api.store.list(res)
	for b.Loop() {
		p := pod("default", "new-n1", "3")
		p.Annotations = map[string]string{"n": time.Now().String()}
		n.put(p)
		for range 100 {
			changes, _, _, _ := api.store.after(res, rev)
			for _, c := range changes {
				c.now.encoded()
			}
		}
		_, rev = api.store.list(res)
	}
}
