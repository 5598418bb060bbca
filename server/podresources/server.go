// Package podresources is the kubelet's podresources/v1 and v1alpha1 on a socket:
// which devices the containers of each pod have, for exporters of their metrics and
// the like.
//
// No container has cpus or memory of its own here, as under a kubelet whose cpu
// and memory managers have the policy none: of these it tells nothing.
package podresources

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

// The kubelet's bounds on requests, and one on who makes them.
const (
	perSecond = 100
	burst     = 10
	mostConns = 64
	patience  = 10 * time.Second
)

// Pod is one that has not run to its end.
type Pod struct {
	types.NamespacedName
	// Containers are its sidecars and then the regular ones.
	Containers []Container
}

// Container is one of a pod's, with the devices it was given.
type Container struct {
	Name    string
	Sidecar bool
	Devices []Device
}

// Device is one of a resource.
type Device struct {
	Resource, ID string
	NUMA         []int64 // the nodes it is near
}

// Source tells what the server says. Its methods may be called concurrently.
type Source interface {
	// Pods are in the order of their names.
	Pods() []Pod
	// Allocatable are the devices that are healthy, whoever has them.
	Allocatable() []Device
}

// Server answers from a Source.
type Server struct {
	Source Source // required
	// Asked is told of every request and of the version of the service that it is
	// to, "v1" or "v1alpha1"; nil: nobody is.
	Asked func(version string)
	v1.UnsafePodResourcesListerServer
}

// Serve answers on ln until ctx is done.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	server := grpc.NewServer(
		grpc.UnaryInterceptor(s.counted(limited(rate.NewLimiter(perSecond, burst)))),
		grpc.MaxRecvMsgSize(64<<10), grpc.MaxConcurrentStreams(16), grpc.ConnectionTimeout(patience),
		grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10), grpc.MaxHeaderListSize(16<<10),
	)
	v1.RegisterPodResourcesListerServer(server, s)
	v1alpha1.RegisterPodResourcesListerServer(server, &alpha{source: s.Source})
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	err := server.Serve(netutil.LimitListener(ln, mostConns))
	if ctx.Err() != nil || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return fmt.Errorf("serving the resources of pods: %w", err)
}

// counted tells of a request, and has next answer it.
func (s *Server) counted(next grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if s.Asked != nil {
			version, _, _ := strings.Cut(strings.TrimPrefix(info.FullMethod, "/"), ".")
			s.Asked(version)
		}
		return next(ctx, req, info, handler)
	}
}

func limited(l *rate.Limiter) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if !l.Allow() {
			return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
		}
		return handler(ctx, req)
	}
}

// List implements the service.
func (s *Server) List(context.Context, *v1.ListPodResourcesRequest) (*v1.ListPodResourcesResponse, error) {
	r := &v1.ListPodResourcesResponse{}
	for _, p := range s.Source.Pods() {
		r.PodResources = append(r.PodResources, resourcesOf(p))
	}
	return r, nil
}

// Get implements the service.
func (s *Server) Get(_ context.Context, req *v1.GetPodResourcesRequest) (*v1.GetPodResourcesResponse, error) {
	for _, p := range s.Source.Pods() {
		if p.Name == req.GetPodName() && p.Namespace == req.GetPodNamespace() {
			return &v1.GetPodResourcesResponse{PodResources: resourcesOf(p)}, nil
		}
	}
	return nil, fmt.Errorf("pod %s in namespace %s not found", req.GetPodName(), req.GetPodNamespace())
}

// GetAllocatableResources implements the service.
func (s *Server) GetAllocatableResources(context.Context, *v1.AllocatableResourcesRequest) (*v1.AllocatableResourcesResponse, error) {
	return &v1.AllocatableResourcesResponse{Devices: devicesOf(s.Source.Allocatable())}, nil
}

func resourcesOf(p Pod) *v1.PodResources {
	r := &v1.PodResources{Name: p.Name, Namespace: p.Namespace}
	for _, c := range p.Containers {
		r.Containers = append(r.Containers, &v1.ContainerResources{Name: c.Name, Devices: devicesOf(c.Devices)})
	}
	return r
}

// devicesOf has an entry for each device and node that it is near, as the kubelet.
func devicesOf(devices []Device) []*v1.ContainerDevices {
	var all []*v1.ContainerDevices
	for _, d := range devices {
		one := &v1.ContainerDevices{ResourceName: d.Resource, DeviceIds: []string{d.ID}}
		if len(d.NUMA) == 0 {
			all = append(all, one)
		}
		for _, n := range d.NUMA {
			near := &v1.TopologyInfo{Nodes: []*v1.NUMANode{{ID: n}}}
			all = append(all, &v1.ContainerDevices{ResourceName: d.Resource, DeviceIds: one.DeviceIds, Topology: near})
		}
	}
	return all
}
