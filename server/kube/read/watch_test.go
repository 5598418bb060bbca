package read

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
	"podd/server/kube/kubetest"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// handler routes requests to a Handler. It supports only requests with valid paths.
type handler struct {
	*Handler
	resources []*resource.Definition
}

func serve(o Options) *handler {
	o.Now = time.Now
	return &handler{New(o), resource.Definitions(resource.Options{})}
}

func (h *handler) resource(name string) *resource.Definition {
	return h.resources[slices.IndexFunc(h.resources, func(d *resource.Definition) bool { return d.Name == name })]
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i := request.Parse(r)
	h.Serve(w, r, h.resource(i.Resource), i)
}

// events reads the events of a watch as "ADDED web-n1 1001".
type events struct {
	t              *testing.T
	lines          *bufio.Scanner
	skipsBookmarks bool // ignore bookmarks, except for the one after the initial objects
}

func startWatch(t *testing.T, url, query string) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", url+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 {
		t.Fatalf("watch %s: got status %s, want 200", query, resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &events{t: t, lines: lines}
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
		e.t.Fatalf("decoding an event: %v; line: %s", err, e.lines.Bytes())
	}
	m := got.Object.Metadata
	switch {
	case got.Object.Kind == "Status":
		return got.Type + " " + got.Object.Message
	case m.Annotations[metav1.InitialEventsAnnotationKey] == "true":
		return got.Type + " end of initial " + m.ResourceVersion
	case e.skipsBookmarks && got.Type == "BOOKMARK":
		return e.next()
	}
	return strings.Join(strings.Fields(got.Type+" "+m.Name+" "+m.ResourceVersion), " ")
}

func TestWatch(t *testing.T) {
	n := kubetest.NewNode()
	s := httptest.NewServer(serve(Options{State: n}))
	t.Cleanup(s.Close)
	const pods = "/api/v1/pods?watch=true"
	kubetest.SendRequest(t, s.Config.Handler, "GET", "/api/v1/pods", "", "") // assigns the revisions 1001 and 1002
	plain := startWatch(t, s.URL, pods)
	plain.want("ADDED web-n1 1001", "ADDED two-n1 1002")
	since := startWatch(t, s.URL, pods+"&resourceVersion=1002")
	list := startWatch(t, s.URL, pods+"&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan")
	list.skipsBookmarks = true // on a busy machine, the test may last longer than bookmarkInterval
	list.want("ADDED web-n1 1001", "ADDED two-n1 1002", "BOOKMARK end of initial 1002")
	labelled := startWatch(t, s.URL, pods+"&labelSelector=app%3Dnew")
	one := startWatch(t, s.URL, "/api/v1/namespaces/shop/pods?watch=true&fieldSelector=metadata.name%3Dtwo-n1")
	one.want("ADDED two-n1 1002")

	added := kubetest.Pod("default", "new-n1", "3")
	n.PutPod(added)
	failed := added.DeepCopy()
	failed.Status.Phase = v1.PodFailed
	plain.want("ADDED new-n1 1003") // waits, so that the next change is a separate event
	n.PutPod(failed)
	plain.want("MODIFIED new-n1 1004")
	other := failed.DeepCopy()
	other.Labels = map[string]string{"app": "old"}
	n.PutPod(other)
	plain.want("MODIFIED new-n1 1005")
	n.PutPod(other.DeepCopy()) // an equal pod, so no event follows
	another := kubetest.Pod("default", "new-n1", "4")
	n.PutPod(another)
	plain.want("DELETED new-n1 1006", "ADDED new-n1 1007")
	n.RemovePod("new-n1")
	plain.want("DELETED new-n1 1008")
	n.RemovePod("two-n1")
	plain.want("DELETED two-n1 1009")

	labelled.want("ADDED new-n1 1003", "MODIFIED new-n1 1004", "DELETED new-n1 1005", "ADDED new-n1 1007", "DELETED new-n1 1008")
	one.want("DELETED two-n1 1009")
	for _, e := range []*events{since, list} {
		e.want("ADDED new-n1 1003", "MODIFIED new-n1 1004", "MODIFIED new-n1 1005", "DELETED new-n1 1006", "ADDED new-n1 1007", "DELETED new-n1 1008", "DELETED two-n1 1009")
	}
	startWatch(t, s.URL, pods+"&resourceVersion=1006").want("ADDED new-n1 1007", "DELETED new-n1 1008", "DELETED two-n1 1009")
	ended := startWatch(t, s.URL, pods+"&resourceVersion=1009&timeoutSeconds=1&allowWatchBookmarks=1")
	ended.want("BOOKMARK 1009", "end")
}

// TestWatch_TooOld checks that a watcher that is too far behind gets an error. Other watchers are
// not delayed.
func TestWatch_TooOld(t *testing.T) {
	n := kubetest.NewNode()
	h := serve(Options{State: n})
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	pods := h.resource("pods")
	kubetest.SendRequest(t, h, "GET", "/api/v1/pods", "", "")
	for i := range 4 * maxChanges {
		p := kubetest.Pod("default", "new-n1", "3")
		p.Annotations = map[string]string{"n": strconv.Itoa(i)}
		n.PutPod(p)
		h.store.list(pods)
	}
	if got := len(h.store.states[pods].changes); got > 2*maxChanges || got < maxChanges {
		t.Errorf("got %d retained changes, want between maxChanges and twice as many", got)
	}
	if w := kubetest.SendRequest(t, h, "GET", "/api/v1/pods?watch=1&resourceVersion=1002", "", ""); w.Code != 410 || !strings.Contains(w.Body.String(), `"reason":"Expired"`) {
		t.Errorf("watch from a revision that is too old: got %d %s, want 410 with reason Expired", w.Code, w.Body)
	}
	w := &watcher{store: h.store, res: pods, rev: 1002, w: httptest.NewRecorder()}
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler { // a recorder does not support deadlines
				t.Errorf("watcher that is too far behind: got panic %v, want %v", p, http.ErrAbortHandler)
			}
		}()
		w.run(t.Context(), watchOptions{rev: 1002})
	}()
	now := fmt.Sprint(h.store.rev)
	startWatch(t, s.URL, "/api/v1/pods?watch=1&resourceVersion="+now+"&timeoutSeconds=1").want("end")
}

// TestWatch_LargeChanges checks that fewer changes are retained if they are large, but at least
// minChanges.
func TestWatch_LargeChanges(t *testing.T) {
	for _, size := range []int{64 << 10, 1 << 20} {
		n := kubetest.NewNode()
		h := serve(Options{State: n})
		res := h.resource("pods")
		h.store.list(res) // revision 1002
		large := strings.Repeat("x", size)
		for i := range 200 {
			p := kubetest.Pod("default", "new-n1", "3")
			p.Annotations = map[string]string{"n": strconv.Itoa(i), "x": large}
			n.PutPod(p)
			h.store.list(res)
			if kept := h.store.states[res]; len(kept.changes) > minChanges && kept.bytes > maxChangeBytes {
				t.Fatalf("got %d retained changes with %d bytes, want at most %d bytes", len(kept.changes), kept.bytes, maxChangeBytes)
			}
		}
		kept, sum := h.store.states[res], 0
		for _, c := range kept.changes {
			sum += c.bytes
		}
		if len(kept.changes) < minChanges || sum != kept.bytes {
			t.Errorf("got %d retained changes with %d bytes and the count %d, want at least %d changes and equal numbers of bytes", len(kept.changes), sum, kept.bytes, minChanges)
		}
		if w := kubetest.SendRequest(t, h, "GET", "/api/v1/pods?watch=1&resourceVersion=1002", "", ""); w.Code != 410 {
			t.Errorf("watch from a revision that is not retained: got %d %.300s, want 410", w.Code, w.Body)
		}
		if _, _, _, known := h.store.changesAfter(res, kept.retainedAfterRev); !known {
			t.Error("changesAfter the oldest retained revision: got none, want the retained changes")
		}
	}
}

// TestWatch_DerivedObjects checks that clients can watch objects that podd derives from others.
func TestWatch_DerivedObjects(t *testing.T) {
	n := kubetest.NewNode()
	s := httptest.NewServer(serve(Options{State: n}))
	t.Cleanup(s.Close)
	spaces := startWatch(t, s.URL, "/api/v1/namespaces?watch=1")
	nodes := startWatch(t, s.URL, "/api/v1/nodes?watch=1")
	secrets := startWatch(t, s.URL, "/api/v1/namespaces/shop/secrets?watch=1")
	for e, want := range map[*events]string{spaces: "ADDED default", nodes: "ADDED n1", secrets: "ADDED key"} {
		if got := e.next(); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	spaces.next()
	n.UpdateView(func(v *server.View) {
		v.Pods, v.Objects = nil, func() *server.Objects { return &server.Objects{} }
		v.NodeObject = v.NodeObject.DeepCopy()
		v.NodeObject.Status.Phase = "x"
	})
	for e, want := range map[*events]string{spaces: "DELETED shop", nodes: "MODIFIED n1", secrets: "DELETED key"} {
		if got := e.next(); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// recorded is an EventSource with the given events.
type recorded struct {
	all     []*v1.Event
	changed chan struct{}
}

func (r *recorded) Events(uint64) ([]*v1.Event, uint64) { return r.all, uint64(len(r.all)) }
func (r *recorded) Changed(uint64) <-chan struct{}      { return r.changed }

func TestWatch_Events(t *testing.T) {
	n, log := kubetest.NewNode(), &recorded{changed: make(chan struct{})}
	event := func(name, reason string) *v1.Event {
		return &v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: name}, Reason: reason, InvolvedObject: v1.ObjectReference{Kind: "Pod", Name: "web-n1"}}
	}
	log.all = []*v1.Event{event("b", "Started"), event("a", "Pulled")}
	h := serve(Options{State: n, Events: log})
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	if w := kubetest.SendRequest(t, h, "GET", "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dweb-n1,reason%3DPulled", "", ""); !strings.Contains(w.Body.String(), `"name":"a"`) || strings.Contains(w.Body.String(), `"name":"b"`) {
		t.Errorf("list of the selected events: got %s, want only event a", w.Body)
	}
	e := startWatch(t, s.URL, "/api/v1/events?watch=1&fieldSelector=involvedObject.kind%3DPod")
	e.want("ADDED a 1001", "ADDED b 1002")
	old := log.changed
	log.all, log.changed = append(log.all[:1:1], event("c", "Killing")), make(chan struct{})
	close(old)
	e.want("DELETED a 1003", "ADDED c 1004")
}

// BenchmarkWatchers sends one change to 100 watchers.
func BenchmarkWatchers(b *testing.B) {
	n := kubetest.NewNode()
	h := serve(Options{State: n})
	res := h.resource("pods")
	_, rev := h.store.list(res)
	for b.Loop() {
		p := kubetest.Pod("default", "new-n1", "3")
		p.Annotations = map[string]string{"n": time.Now().String()}
		n.PutPod(p)
		for range 100 {
			changes, _, _, _ := h.store.changesAfter(res, rev)
			for _, c := range changes {
				c.newEntry.JSON()
			}
		}
		_, rev = h.store.list(res)
	}
}
