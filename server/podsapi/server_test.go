package podsapi

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"podd/server"
)

// newPod returns a pod with this UID and phase.
func newPod(uid types.UID, phase v1.PodPhase) *server.PodView {
	return &server.PodView{Pod: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod-" + string(uid), UID: uid},
		Spec:       v1.PodSpec{NodeName: "node"},
		Status:     v1.PodStatus{Phase: phase},
	}}
}

// requestLog contains the requests that a Server has reported.
type requestLog struct {
	mu       sync.Mutex // guards requests
	requests []string
}

func (l *requestLog) record(method, code string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, method+" "+code)
}

// sorted returns the requests, sorted.
func (l *requestLog) sorted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.requests))
}

// serve returns a client of a server that runs until the test ends, and its log of requests.
func serve(t *testing.T, state server.Viewer) (v1alpha1.PodsClient, *requestLog) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served, log := make(chan error), &requestLog{}
	s := &Server{State: state, OnRequest: log.record}
	go func() { served <- s.Serve(ctx, ln) }()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true))) // a busy machine may exceed the server's time limit for connecting
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return v1alpha1.NewPodsClient(conn), log
}

// format returns "UID phase" of a pod in the format of the API.
func format(t *testing.T, data []byte) string {
	t.Helper()
	var p v1.Pod
	if err := p.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(fmt.Sprint(p.UID, " ", p.Status.Phase))
}

// TestServer_Unary checks ListPods and GetPod, and that both are reported.
func TestServer_Unary(t *testing.T) {
	unknown := newPod("", "")
	state := server.NewLatestView(&server.View{Revision: 1, Pods: []*server.PodView{newPod("b", v1.PodRunning), unknown, newPod("a", v1.PodPending)}})
	client, log := serve(t, state)
	list, err := client.ListPods(t.Context(), &v1alpha1.ListPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, data := range list.GetPods() {
		got = append(got, format(t, data))
	}
	if want := []string{"a Pending", "b Running"}; !slices.Equal(got, want) {
		t.Errorf("ListPods: got %q, want %q", got, want)
	}
	one, err := client.GetPod(t.Context(), &v1alpha1.GetPodRequest{PodUID: "b"})
	if err != nil || format(t, one.GetPod()) != "b Running" {
		t.Errorf("GetPod: got %v and error %v, want b Running", one, err)
	}
	for _, uid := range []string{"c", ""} {
		if _, err := client.GetPod(t.Context(), &v1alpha1.GetPodRequest{PodUID: uid}); status.Code(err) != codes.NotFound {
			t.Errorf("GetPod of UID %q: got %v, want NotFound", uid, err)
		}
	}
	if got, want := log.sorted(), []string{"GetPod NotFound", "GetPod NotFound", "GetPod OK", "ListPods OK"}; !slices.Equal(got, want) {
		t.Errorf("reported requests: got %q, want %q", got, want)
	}
}

// TestServer_Incomplete checks that all methods fail until podd has started and has read all sources.
func TestServer_Incomplete(t *testing.T) {
	for want, v := range map[string]*server.View{
		"podd is starting":            {Starting: true},
		"podd has not read /etc/podd": {UnreadSources: []string{"/etc/podd"}},
	} {
		client, _ := serve(t, server.NewLatestView(v))
		_, listErr := client.ListPods(t.Context(), &v1alpha1.ListPodsRequest{})
		_, getErr := client.GetPod(t.Context(), &v1alpha1.GetPodRequest{PodUID: "a"})
		stream, watchErr := client.WatchPods(t.Context(), &v1alpha1.WatchPodsRequest{})
		if watchErr == nil {
			_, watchErr = stream.Recv()
		}
		for name, err := range map[string]error{"ListPods": listErr, "GetPod": getErr, "WatchPods": watchErr} {
			if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got the error %v, want FailedPrecondition: %s", name, err, want)
			}
		}
	}
}

// TestServer_Watch checks that a watch first sends an event for each existing pod, and then only
// changes to pods. A PodView that changes without its Pod causes no event.
func TestServer_Watch(t *testing.T) {
	a, b := newPod("a", v1.PodPending), newPod("b", v1.PodRunning)
	state := server.NewLatestView(&server.View{Revision: 1, Pods: []*server.PodView{a, b}})
	client, log := serve(t, state)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client.WatchPods(ctx, &v1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := func(events ...string) {
		t.Helper()
		for _, want := range events {
			e, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(e.GetType().String() + " " + format(t, e.GetPod())); got != want {
				t.Fatalf("got the event %q, want %q", got, want)
			}
		}
	}
	want("ADDED a Pending", "ADDED b Running", "INITIAL_SYNC_COMPLETE")
	running, explained := newPod("a", v1.PodRunning), *b
	explained.Why = "another reason"
	state.Publish(&server.View{Revision: 2, Pods: []*server.PodView{a, &explained}})
	state.Publish(&server.View{Revision: 3, Pods: []*server.PodView{running, &explained}})
	want("MODIFIED a Running")
	state.Publish(&server.View{Revision: 4, Pods: []*server.PodView{running, newPod("c", v1.PodPending)}})
	want("DELETED b", "ADDED c Pending")
	cancel()
	for deadline := time.Now().Add(5 * time.Minute); len(log.sorted()) == 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if got, want := log.sorted(), []string{"WatchPods Canceled"}; !slices.Equal(got, want) {
		t.Errorf("reported requests: got %q, want %q", got, want)
	}
}

// TestServer_RateLimit checks that requests above the limit are rejected and not reported.
func TestServer_RateLimit(t *testing.T) {
	log := &requestLog{}
	s := &Server{State: server.NewLatestView(&server.View{}), OnRequest: log.record}
	intercept := s.interceptUnary(rate.NewLimiter(0, 1))
	handler := func(context.Context, any) (any, error) { return "reply", nil }
	info := &grpc.UnaryServerInfo{FullMethod: v1alpha1.Pods_ListPods_FullMethodName}
	for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		if _, err := intercept(t.Context(), nil, info, handler); status.Code(err) != want {
			t.Errorf("got the error %v, want code %s", err, want)
		}
	}
	if got, want := log.sorted(), []string{"ListPods OK"}; !slices.Equal(got, want) {
		t.Errorf("reported requests: got %q, want %q", got, want)
	}
}
