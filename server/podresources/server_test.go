package podresources

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/server/localrpc"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/apimachinery/pkg/types"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

type fixed struct{ pods []Pod }

func (f fixed) Pods() []Pod { return f.pods }

func (f fixed) Allocatable() []Device {
	return []Device{{"example.com/gpu", "a", nil}, {"example.com/gpu", "b", []int64{0, 1}}}
}

// client returns a connection to a server that runs until the test ends. onRequest may be nil.
func client(t *testing.T, onRequest func(version, method string, failed bool)) *grpc.ClientConn {
	t.Helper()
	dir, err := os.MkdirTemp("", "podd")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	s := &Server{Source: fixed{[]Pod{{types.NamespacedName{Namespace: "default", Name: "web"}, []Container{
		{Name: "side", IsSidecar: true}, {Name: "main", Devices: []Device{{"example.com/gpu", "b", []int64{1}}}}, {Name: "plain"},
	}}}}, OnRequest: onRequest}
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
		os.RemoveAll(dir)
	})
	return conn
}

func near(resource, id string, node int64) *v1.ContainerDevices {
	return &v1.ContainerDevices{ResourceName: resource, DeviceIds: []string{id}, Topology: &v1.TopologyInfo{Nodes: []*v1.NUMANode{{ID: node}}}}
}

func TestServer(t *testing.T) {
	conn := client(t, nil)
	c := v1.NewPodResourcesListerClient(conn)
	web := &v1.PodResources{Name: "web", Namespace: "default", Containers: []*v1.ContainerResources{
		{Name: "side"}, {Name: "main", Devices: []*v1.ContainerDevices{near("example.com/gpu", "b", 1)}}, {Name: "plain"},
	}}
	list, err := c.List(t.Context(), &v1.ListPodResourcesRequest{})
	if diff := cmp.Diff(&v1.ListPodResourcesResponse{PodResources: []*v1.PodResources{web}}, list, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("got error %v, want none; response (-want +got):\n%s", err, diff)
	}
	one, err := c.Get(t.Context(), &v1.GetPodResourcesRequest{PodName: "web", PodNamespace: "default"})
	if diff := cmp.Diff(&v1.GetPodResourcesResponse{PodResources: web}, one, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("got error %v, want none; response (-want +got):\n%s", err, diff)
	}
	if _, err := c.Get(t.Context(), &v1.GetPodResourcesRequest{PodName: "web", PodNamespace: "other"}); err == nil || !strings.Contains(err.Error(), "pod web in namespace other not found") {
		t.Errorf("Get of a pod in another namespace: got error %v, want one that the pod was not found", err)
	}
	all, err := c.GetAllocatableResources(t.Context(), &v1.AllocatableResourcesRequest{})
	want := &v1.AllocatableResourcesResponse{Devices: []*v1.ContainerDevices{
		{ResourceName: "example.com/gpu", DeviceIds: []string{"a"}}, near("example.com/gpu", "b", 0), near("example.com/gpu", "b", 1),
	}}
	if diff := cmp.Diff(want, all, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("got error %v, want none; response (-want +got):\n%s", err, diff)
	}
}

// TestServer_V1alpha1 checks that the response of the API version v1alpha1 contains no sidecars and
// no NUMA nodes.
func TestServer_V1alpha1(t *testing.T) {
	got, err := v1alpha1.NewPodResourcesListerClient(client(t, nil)).List(t.Context(), &v1alpha1.ListPodResourcesRequest{})
	want := &v1alpha1.ListPodResourcesResponse{PodResources: []*v1alpha1.PodResources{{Name: "web", Namespace: "default", Containers: []*v1alpha1.ContainerResources{
		{Name: "main", Devices: []*v1alpha1.ContainerDevices{{ResourceName: "example.com/gpu", DeviceIds: []string{"b"}}}}, {Name: "plain"},
	}}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("got error %v, want none; response (-want +got):\n%s", err, diff)
	}
}

// TestServer_OnRequest checks that each request is reported with its version, method and result.
func TestServer_OnRequest(t *testing.T) {
	requests := make(chan string, 4)
	conn := client(t, func(version, method string, failed bool) { requests <- fmt.Sprint(version, " ", method, " ", failed) })
	c := v1.NewPodResourcesListerClient(conn)
	c.List(t.Context(), &v1.ListPodResourcesRequest{})
	c.Get(t.Context(), &v1.GetPodResourcesRequest{})
	c.GetAllocatableResources(t.Context(), &v1.AllocatableResourcesRequest{})
	v1alpha1.NewPodResourcesListerClient(conn).List(t.Context(), &v1alpha1.ListPodResourcesRequest{})
	for _, want := range []string{"v1 List false", "v1 Get true", "v1 GetAllocatableResources false", "v1alpha1 List false"} {
		if got := <-requests; got != want {
			t.Errorf("got request %q, want %q", got, want)
		}
	}
}

// TestServer_RateLimit checks that a client that exceeds the rate limit gets the kubelet's error.
func TestServer_RateLimit(t *testing.T) {
	limit, handled := localrpc.LimitRate(rate.NewLimiter(0, 2)), 0
	handler := func(context.Context, any) (any, error) { handled++; return nil, nil }
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
		if _, err := limit(t.Context(), nil, nil, handler); status.Code(err) != want {
			t.Errorf("request %d: got error %v, want %s", i+1, err, want)
		}
	}
	if handled != 2 {
		t.Errorf("got %d requests handled, want 2", handled)
	}
}
