package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
)

// fakeAPI is an API server with one Node, one Lease, pods and other objects, and with faults that
// tests inject. The behavior without faults is tested with a real API server in
// cmd/podd/e2e/cluster.
type fakeAPI struct {
	mu         sync.Mutex // guards all following fields
	version    int        // resource version of the last change
	node       *v1.Node
	lease      *coordination.Lease
	pods       map[types.NamespacedName]*v1.Pod
	service    types.UID            // UID of the Service default/kubernetes; "" if it does not exist
	events     map[string]*v1.Event // by name
	dropFields func(*v1.Pod)        // removes status fields that the API server does not support; may be nil
	// dropNodeFields is like dropFields for the Node.
	dropNodeFields func(*v1.Node)
	// changes contains all changes by watch target, such as "pods" or "configmaps/default/conf". A watch
	// begins with the changes after its resource version.
	changes  map[string][]change
	watches  []*watcher
	requests []string // "GET nodes", "WATCH nodes", …
	objects  fakeObjects
	// fault returns the response to a request, or nil and nil if the fakeAPI must handle the
	// request. fault may be nil.
	fault func(*http.Request) (*http.Response, error)
}

var (
	nodesResource  = schema.GroupResource{Resource: "nodes"}
	leasesResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
)

// A change is a change of an object.
type change struct {
	version int    // resource version of the changed object
	event   []byte // watch event
}

// A watcher is a watch of all objects of a resource, or of one object.
type watcher struct {
	target string // a key of fakeAPI.changes
	*io.PipeWriter
	queue    [][]byte // events that are not written yet
	hasEnded bool     // the requested time is over; the watch is closed when the queue is empty
}

// RoundTrip implements http.RoundTripper.
func (f *fakeAPI) RoundTrip(q *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	verb, resource := q.Method, "nodes"
	if q.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	for _, other := range []string{"leases", "pods", "events"} {
		if strings.Contains(q.URL.Path, "/"+other) {
			resource = other
		}
	}
	if r, _, _, _ := parsePath(q); objectKinds[r] != "" {
		resource = r
	}
	f.requests = append(f.requests, verb+" "+resource)
	if f.fault != nil {
		fault := f.fault
		f.mu.Unlock() // unlock, because fault may block
		r, err := fault(q)
		f.mu.Lock()
		if r != nil || err != nil {
			return r, err
		}
	}
	var body []byte
	if q.Body != nil {
		body, _ = io.ReadAll(q.Body)
	}
	if strings.HasSuffix(q.URL.Path, "/services/kubernetes") {
		return f.kubernetesService(), nil
	}
	if r := f.handleObject(q, verb, body); r != nil {
		return r, nil
	}
	switch {
	case verb == "WATCH":
		return f.watch(q, resource), nil
	case resource == "leases":
		return f.handleLease(verb, body), nil
	case resource == "pods":
		return f.handlePod(q, verb, body), nil
	case resource == "events":
		return f.handleEvent(q, verb, body), nil
	case verb == "GET" && strings.HasSuffix(q.URL.Path, "/n1"):
		if f.node == nil {
			return clustertest.ErrorResponse(apierrors.NewNotFound(nodesResource, "n1")), nil
		}
		return clustertest.Response(200, f.node), nil
	}
	return f.handleNode(verb, body), nil
}

// handleNode lists, creates or patches Nodes.
func (f *fakeAPI) handleNode(verb string, body []byte) *http.Response {
	switch {
	case verb == "GET":
		l := &v1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(f.version)}}
		if f.node != nil {
			l.Items = append(l.Items, *f.node)
		}
		return clustertest.Response(200, l)
	case verb == "POST" && f.node != nil:
		return clustertest.ErrorResponse(apierrors.NewAlreadyExists(nodesResource, "n1"))
	case verb == "POST":
		f.putNode(clustertest.MustDecode[v1.Node](body), "ADDED")
	case f.node == nil:
		return clustertest.ErrorResponse(apierrors.NewNotFound(nodesResource, "n1"))
	case verb == "PATCH":
		before, _ := json.Marshal(f.node)
		after, err := strategicpatch.StrategicMergePatch(before, body, v1.Node{})
		if err != nil {
			return clustertest.ErrorResponse(apierrors.NewBadRequest(err.Error()))
		}
		f.putNode(clustertest.MustDecode[v1.Node](after), "MODIFIED")
	}
	return clustertest.Response(200, f.node)
}

// putNode stores the Node, or deletes it if event is "DELETED". It then sends the event to the
// watches. The caller must hold mu.
func (f *fakeAPI) putNode(n *v1.Node, event string) {
	if f.dropNodeFields != nil {
		f.dropNodeFields(n)
	}
	f.version++
	n.ResourceVersion = fmt.Sprint(f.version)
	n.TypeMeta, n.Name = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, "n1"
	if n.UID == "" {
		n.UID = types.UID("u" + n.ResourceVersion)
	}
	f.node = n
	f.notify("nodes", event, n)
	if event == "DELETED" {
		f.node = nil
	}
}

// notify records a change with the current resource version, and sends its event to the watches of
// target, a key of changes. The caller must hold mu.
func (f *fakeAPI) notify(target, event string, o runtime.Object) {
	object, _ := json.Marshal(o)
	text, _ := json.Marshal(metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: object}})
	if f.changes == nil {
		f.changes = map[string][]change{}
	}
	f.changes[target] = append(f.changes[target], change{f.version, text})
	for _, w := range f.watches {
		if w.target == target {
			f.send(w, text)
		}
	}
}

// send queues an event for a watch unless the watch has ended. The caller must hold mu.
func (f *fakeAPI) send(w *watcher, event []byte) {
	if w.hasEnded {
		return
	}
	if w.queue = append(w.queue, event); len(w.queue) == 1 {
		go f.write(w)
	}
}

// write writes the queued events of a watch.
func (f *fakeAPI) write(w *watcher) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(w.queue) > 0 {
		text := w.queue[0]
		f.mu.Unlock()
		_, _ = w.Write(text) // fails if the watch was interrupted or canceled
		f.mu.Lock()
		w.queue = w.queue[1:]
	}
	if w.hasEnded {
		w.Close()
	}
}

// end ends a watch after its queued events, as an API server does at the requested time.
func (f *fakeAPI) end(w *watcher) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.hasEnded = true; len(w.queue) == 0 {
		w.Close()
	}
}

func (f *fakeAPI) kubernetesService() *http.Response {
	if f.service == "" {
		return clustertest.ErrorResponse(apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, "kubernetes"))
	}
	s := &v1.Service{TypeMeta: metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}}
	s.Namespace, s.Name, s.UID = "default", "kubernetes", f.service
	return clustertest.Response(200, s)
}

func (f *fakeAPI) podList() *http.Response {
	l := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(f.version)}}
	for _, p := range f.pods {
		l.Items = append(l.Items, *p)
	}
	return clustertest.Response(200, l)
}

// putPod stores a pod, or deletes it if event is "DELETED". It then sends the event to the watches.
// The caller must hold mu.
func (f *fakeAPI) putPod(p *v1.Pod, event string) {
	f.version++
	p = p.DeepCopy()
	p.ResourceVersion = fmt.Sprint(f.version)
	p.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	if f.pods == nil {
		f.pods = map[types.NamespacedName]*v1.Pod{}
	}
	f.pods[apiserver.ObjectKey(p)] = p
	f.notify("pods", event, p)
	if event == "DELETED" {
		delete(f.pods, apiserver.ObjectKey(p))
	}
}

// handleLease handles a request for the Lease of the node.
func (f *fakeAPI) handleLease(verb string, body []byte) *http.Response {
	old := f.lease
	if verb != "POST" && old == nil {
		return clustertest.ErrorResponse(apierrors.NewNotFound(leasesResource, "n1"))
	}
	if verb != "GET" {
		next := clustertest.MustDecode[coordination.Lease](body)
		if old != nil && next.ResourceVersion != old.ResourceVersion {
			return clustertest.ErrorResponse(apierrors.NewConflict(leasesResource, "n1", fmt.Errorf("changed")))
		}
		f.version++
		next.ResourceVersion, next.TypeMeta = fmt.Sprint(f.version), metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
		f.lease = next
	}
	return clustertest.Response(200, f.lease)
}

// watch starts a watch of target, a key of changes.
func (f *fakeAPI) watch(q *http.Request, target string) *http.Response {
	r, out := io.Pipe()
	w := &watcher{target: target, PipeWriter: out}
	f.watches = append(f.watches, w)
	var version, seconds int
	_, _ = fmt.Sscan(q.URL.Query().Get("resourceVersion"), &version)
	for _, c := range f.changes[target] {
		if c.version > version {
			f.send(w, c.event)
		}
	}
	_, _ = fmt.Sscan(q.URL.Query().Get("timeoutSeconds"), &seconds)
	ended := time.AfterFunc(time.Duration(seconds)*time.Second, func() { f.end(w) })
	context.AfterFunc(q.Context(), func() { ended.Stop(); w.CloseWithError(context.Canceled) })
	return &http.Response{StatusCode: 200, Header: clustertest.JSONType, Body: r}
}

// interruptWatches ends all watches before the requested time. The caller must hold mu.
func (f *fakeAPI) interruptWatches() {
	for _, w := range f.watches {
		w.CloseWithError(io.ErrUnexpectedEOF)
	}
	f.watches = nil
}
