// Package podresources serves the kubelet's podresources/v1 and v1alpha1 APIs on a Unix socket.
// Clients such as metrics exporters use it to read which devices are assigned to the containers of
// each pod.
//
// The package reports no CPUs and no memory, because podd assigns neither exclusively to
// containers. A kubelet whose CPU and memory managers have the policy none does not report them
// either.
package podresources

import (
	"context"
	"fmt"
	"net"
	"path"
	"strings"

	"podd/server/localrpc"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

// Pod is a pod that has not terminated.
type Pod struct {
	types.NamespacedName
	// Containers are the sidecars, followed by the regular containers.
	Containers []Container
}

// Container is a container with the devices that are assigned to it.
type Container struct {
	Name      string
	IsSidecar bool
	Devices   []Device
}

// Device is one device of a resource.
type Device struct {
	Resource, ID string
	NUMANodes    []int64 // ids of the NUMA nodes with affinity to the device
}

// A Source provides the data that the server serves. Its methods may be called
// concurrently.
type Source interface {
	// Pods returns the pods, sorted by name.
	Pods() []Pod
	// Allocatable returns the healthy devices, assigned or not.
	Allocatable() []Device
}

// Server serves the data of a Source.
type Server struct {
	Source Source // required
	// OnRequest is called after every request that the limit on requests allows. version is the version
	// of the API, "v1" or "v1alpha1", and method the requested method, such as "List". OnRequest may be
	// nil.
	OnRequest func(version, method string, hasFailed bool)
	v1.UnsafePodResourcesListerServer
}

// Serve serves on ln until ctx is done.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	server := localrpc.NewServer(grpc.ChainUnaryInterceptor(localrpc.LimitRate(localrpc.NewLimiter()), s.recordRequest))
	v1.RegisterPodResourcesListerServer(server, s)
	v1alpha1.RegisterPodResourcesListerServer(server, &alphaServer{source: s.Source})
	if err := localrpc.Serve(ctx, server, ln); err != nil {
		return fmt.Errorf("serving the pod resources API: %w", err)
	}
	return nil
}

// recordRequest is an interceptor that calls OnRequest after the request.
func (s *Server) recordRequest(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	res, err := handler(ctx, req)
	if s.OnRequest != nil {
		version, _, _ := strings.Cut(strings.TrimPrefix(info.FullMethod, "/"), ".")
		s.OnRequest(version, path.Base(info.FullMethod), err != nil)
	}
	return res, err
}

// List implements v1.PodResourcesListerServer.
func (s *Server) List(context.Context, *v1.ListPodResourcesRequest) (*v1.ListPodResourcesResponse, error) {
	r := &v1.ListPodResourcesResponse{}
	for _, p := range s.Source.Pods() {
		r.PodResources = append(r.PodResources, toPodResources(p))
	}
	return r, nil
}

// Get implements v1.PodResourcesListerServer.
func (s *Server) Get(_ context.Context, req *v1.GetPodResourcesRequest) (*v1.GetPodResourcesResponse, error) {
	for _, p := range s.Source.Pods() {
		if p.Name == req.GetPodName() && p.Namespace == req.GetPodNamespace() {
			return &v1.GetPodResourcesResponse{PodResources: toPodResources(p)}, nil
		}
	}
	return nil, fmt.Errorf("pod %s in namespace %s not found", req.GetPodName(), req.GetPodNamespace())
}

// GetAllocatableResources implements v1.PodResourcesListerServer.
func (s *Server) GetAllocatableResources(context.Context, *v1.AllocatableResourcesRequest) (*v1.AllocatableResourcesResponse, error) {
	return &v1.AllocatableResourcesResponse{Devices: toDevices(s.Source.Allocatable())}, nil
}

func toPodResources(p Pod) *v1.PodResources {
	r := &v1.PodResources{Name: p.Name, Namespace: p.Namespace}
	for _, c := range p.Containers {
		r.Containers = append(r.Containers, &v1.ContainerResources{Name: c.Name, Devices: toDevices(c.Devices)})
	}
	return r
}

// toDevices returns one entry for each device and each NUMA node to which the device has affinity,
// as the kubelet does.
func toDevices(devices []Device) []*v1.ContainerDevices {
	var entries []*v1.ContainerDevices
	for _, d := range devices {
		entry := &v1.ContainerDevices{ResourceName: d.Resource, DeviceIds: []string{d.ID}}
		if len(d.NUMANodes) == 0 {
			entries = append(entries, entry)
		}
		for _, n := range d.NUMANodes {
			topology := &v1.TopologyInfo{Nodes: []*v1.NUMANode{{ID: n}}}
			entries = append(entries, &v1.ContainerDevices{ResourceName: d.Resource, DeviceIds: entry.DeviceIds, Topology: topology})
		}
	}
	return entries
}
