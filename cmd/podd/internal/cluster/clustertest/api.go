package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"podd/cmd/podd/internal/cluster/apiserver"
)

// An API is an API server with one Node, one Lease, pods and other objects, and with faults that
// tests inject. Its watches and the methods that wait, such as Change, must be used in a synctest
// bubble, because the ends of watches depend on time. The behavior without faults is tested with a
// real API server in cmd/podd/e2e/cluster.
type API struct {
	Mu      sync.Mutex // guards all following fields
	Version int        // resource version of the last change
	Node    *v1.Node
	Lease   *coordination.Lease
	Pods    map[types.NamespacedName]*v1.Pod
	Service types.UID // UID of the Service default/kubernetes; "" if it does not exist
	// DropPodFields and DropNodeFields remove status fields that the API server does not support. They may
	// be nil.
	DropPodFields  func(*v1.Pod)
	DropNodeFields func(*v1.Node)
	Objects        map[string]apiserver.Object // by keys such as "configmaps/default/conf" and "csinodes//n1"
	TokenRequests  []authentication.TokenRequest
	RejectsTokens  bool          // token requests get a 404 response
	ClockLag       time.Duration // the clock of the API server is behind the clock of this node by this duration
	// Fault returns the response to a request, or nil and nil if the API must handle the request. Fault
	// may be nil.
	Fault func(*http.Request) (*http.Response, error)

	// changes contains all changes by watch target, such as "pods" or "configmaps/default/conf". A watch
	// begins with the changes after its resource version.
	changes  map[string][]change
	requests []string // "GET nodes", "WATCH nodes", …
	watches  []*watcher
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
	target string // a key of API.changes
	*io.PipeWriter
	queue    [][]byte // events that are not written yet
	hasEnded bool     // the requested time is over; the watch is closed when the queue is empty
}

// RoundTrip implements http.RoundTripper.
func (f *API) RoundTrip(q *http.Request) (*http.Response, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	verb, resource := q.Method, "nodes"
	if q.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	for _, other := range []string{"leases", "pods"} {
		if strings.Contains(q.URL.Path, "/"+other) {
			resource = other
		}
	}
	if r, _, _, _ := parsePath(q); objectKinds[r] != "" {
		resource = r
	}
	f.requests = append(f.requests, verb+" "+resource)
	if f.Fault != nil {
		fault := f.Fault
		f.Mu.Unlock() // unlock, because fault may block
		r, err := fault(q)
		f.Mu.Lock()
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
	case verb == "GET" && strings.HasSuffix(q.URL.Path, "/n1"):
		if f.Node == nil {
			return ErrorResponse(apierrors.NewNotFound(nodesResource, "n1")), nil
		}
		return Response(200, f.Node), nil
	}
	return f.handleNode(verb, body), nil
}

// handleNode lists, creates or patches Nodes.
func (f *API) handleNode(verb string, body []byte) *http.Response {
	switch {
	case verb == "GET":
		l := &v1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(f.Version)}}
		if f.Node != nil {
			l.Items = append(l.Items, *f.Node)
		}
		return Response(200, l)
	case verb == "POST" && f.Node != nil:
		return ErrorResponse(apierrors.NewAlreadyExists(nodesResource, "n1"))
	case verb == "POST":
		f.PutNode(MustDecode[v1.Node](body), "ADDED")
	case f.Node == nil:
		return ErrorResponse(apierrors.NewNotFound(nodesResource, "n1"))
	case verb == "PATCH":
		before, _ := json.Marshal(f.Node)
		after, err := strategicpatch.StrategicMergePatch(before, body, v1.Node{})
		if err != nil {
			return ErrorResponse(apierrors.NewBadRequest(err.Error()))
		}
		f.PutNode(MustDecode[v1.Node](after), "MODIFIED")
	}
	return Response(200, f.Node)
}

// PutNode stores the Node, or deletes it if event is "DELETED". It then sends the event to the
// watches. The caller must hold Mu.
func (f *API) PutNode(n *v1.Node, event string) {
	if f.DropNodeFields != nil {
		f.DropNodeFields(n)
	}
	f.Version++
	n.ResourceVersion = fmt.Sprint(f.Version)
	n.TypeMeta, n.Name = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, "n1"
	if n.UID == "" {
		n.UID = types.UID("u" + n.ResourceVersion)
	}
	f.Node = n
	f.notify("nodes", event, n)
	if event == "DELETED" {
		f.Node = nil
	}
}

// notify records a change with the current resource version, and sends its event to the watches of
// target, a key of changes. The caller must hold Mu.
func (f *API) notify(target, event string, o runtime.Object) {
	object, _ := json.Marshal(o)
	text, _ := json.Marshal(metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: object}})
	if f.changes == nil {
		f.changes = map[string][]change{}
	}
	f.changes[target] = append(f.changes[target], change{f.Version, text})
	for _, w := range f.watches {
		if w.target == target {
			f.send(w, text)
		}
	}
}

// send queues an event for a watch unless the watch has ended. The caller must hold Mu.
func (f *API) send(w *watcher, event []byte) {
	if w.hasEnded {
		return
	}
	if w.queue = append(w.queue, event); len(w.queue) == 1 {
		go f.write(w)
	}
}

// write writes the queued events of a watch.
func (f *API) write(w *watcher) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for len(w.queue) > 0 {
		text := w.queue[0]
		f.Mu.Unlock()
		_, _ = w.Write(text) // fails if the watch was interrupted or canceled
		f.Mu.Lock()
		w.queue = w.queue[1:]
	}
	if w.hasEnded {
		w.Close()
	}
}

// end ends a watch after its queued events, as an API server does at the requested time.
func (f *API) end(w *watcher) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if w.hasEnded = true; len(w.queue) == 0 {
		w.Close()
	}
}

func (f *API) kubernetesService() *http.Response {
	if f.Service == "" {
		return ErrorResponse(apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, "kubernetes"))
	}
	s := &v1.Service{TypeMeta: metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}}
	s.Namespace, s.Name, s.UID = "default", "kubernetes", f.Service
	return Response(200, s)
}

func (f *API) podList() *http.Response {
	l := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(f.Version)}}
	for _, p := range f.Pods {
		l.Items = append(l.Items, *p)
	}
	return Response(200, l)
}

// PutPod stores a pod, or deletes it if event is "DELETED". It then sends the event to the watches.
// The caller must hold Mu.
func (f *API) PutPod(p *v1.Pod, event string) {
	f.Version++
	p = p.DeepCopy()
	p.ResourceVersion = fmt.Sprint(f.Version)
	p.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	if f.Pods == nil {
		f.Pods = map[types.NamespacedName]*v1.Pod{}
	}
	f.Pods[apiserver.ObjectKey(p)] = p
	f.notify("pods", event, p)
	if event == "DELETED" {
		delete(f.Pods, apiserver.ObjectKey(p))
	}
}

// handleLease handles a request for the Lease of the node.
func (f *API) handleLease(verb string, body []byte) *http.Response {
	old := f.Lease
	if verb != "POST" && old == nil {
		return ErrorResponse(apierrors.NewNotFound(leasesResource, "n1"))
	}
	if verb != "GET" {
		next := MustDecode[coordination.Lease](body)
		if old != nil && next.ResourceVersion != old.ResourceVersion {
			return ErrorResponse(apierrors.NewConflict(leasesResource, "n1", fmt.Errorf("changed")))
		}
		f.Version++
		next.ResourceVersion, next.TypeMeta = fmt.Sprint(f.Version), metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
		f.Lease = next
	}
	return Response(200, f.Lease)
}

// watch starts a watch of target, a key of changes.
func (f *API) watch(q *http.Request, target string) *http.Response {
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
	return &http.Response{StatusCode: 200, Header: JSONType, Body: r}
}

// InterruptWatches ends all watches before the requested time. The caller must hold Mu.
func (f *API) InterruptWatches() { f.EndWatches(io.ErrUnexpectedEOF) }

// EndWatches ends all watches with an error. The caller must hold Mu.
func (f *API) EndWatches(err error) {
	for _, w := range f.watches {
		w.CloseWithError(err)
	}
	f.watches = nil
}

// ForgetChanges removes the changes that later watches would report, as in an API server that has lost its data.
// The caller must hold Mu.
func (f *API) ForgetChanges() { f.changes = nil }

// Change calls do while it holds Mu, and then waits until all goroutines of the bubble are blocked.
func (f *API) Change(do func()) {
	f.Mu.Lock()
	do()
	f.Mu.Unlock()
	synctest.Wait()
}

// CountRequests returns the number of requests of each kind, such as "GET nodes", since the last
// call of CountRequests. It forgets all requests, including those of other kinds.
func (f *API) CountRequests(kinds ...string) (n []int) {
	f.Change(func() {
		for _, kind := range kinds {
			n = append(n, len(slices.DeleteFunc(slices.Clone(f.requests), func(r string) bool { return r != kind })))
		}
		f.requests = nil
	})
	return n
}

// StoredNode returns the Node, or nil.
func (f *API) StoredNode() *v1.Node {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Node
}

// StoredPod returns a pod, or nil.
func (f *API) StoredPod(namespace, name string) *v1.Pod {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Pods[types.NamespacedName{Namespace: namespace, Name: name}]
}

// StoredCSINode returns the CSINode of the Node n1, or nil.
func (f *API) StoredCSINode() *storage.CSINode {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	n, _ := f.Objects["csinodes//n1"].(*storage.CSINode)
	return n
}

// Advance lets d pass in the bubble and waits until all its goroutines are blocked.
func Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
