package runtimetest

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (s *service) Version(context.Context, *api.VersionRequest) (*api.VersionResponse, error) {
	name, version := "containerd", "v2.4.2"
	if s.options.CRIO {
		name, version = "cri-o", "1.36.3"
	}
	if s.options.Version != "" {
		version = s.options.Version
	}
	return &api.VersionResponse{Version: "0.1.0", RuntimeName: name, RuntimeVersion: version, RuntimeApiVersion: "v1"}, nil
}

func (s *service) RuntimeConfig(context.Context, *api.RuntimeConfigRequest) (*api.RuntimeConfigResponse, error) {
	if s.options.NoRuntimeConfig {
		return nil, status.Error(codes.Unimplemented, "unknown method RuntimeConfig for service runtime.v1.RuntimeService")
	}
	driver := api.CgroupDriver_CGROUPFS
	if s.options.CgroupDriver == "systemd" {
		driver = api.CgroupDriver_SYSTEMD
	}
	return &api.RuntimeConfigResponse{Linux: &api.LinuxRuntimeConfiguration{CgroupDriver: driver}}, nil
}

func (s *service) Status(_ context.Context, q *api.StatusRequest) (*api.StatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &api.StatusResponse{Status: &api.RuntimeStatus{Conditions: []*api.RuntimeCondition{
		{Type: api.RuntimeReady, Status: true},
		{Type: api.NetworkReady, Status: s.networkFailure == "", Message: s.networkFailure},
	}}}
	if !s.options.NoRuntimeConfig {
		response.Features = &api.RuntimeFeatures{SupplementalGroupsPolicy: true}
		for _, name := range append([]string{""}, s.options.Handlers...) {
			response.RuntimeHandlers = append(response.RuntimeHandlers, &api.RuntimeHandler{
				Name: name, Features: &api.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: true},
			})
		}
	}
	if q.GetVerbose() {
		response.Info = map[string]string{
			"config": fmt.Sprintf(`{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"runtimeType":"io.containerd.runc.v2",`+
				`"options":{"SystemdCgroup":%t}}}},"cni":{"confDir":"/etc/cni/net.d"}}`, s.options.CgroupDriver == "systemd"),
			"lastCNILoadStatus": "OK",
		}
		if s.networkFailure != "" {
			response.Info["lastCNILoadStatus"] = "cni config load failed: no network config found in /etc/cni/net.d: cni plugin not initialized: failed to load cni config"
		}
	}
	return response, nil
}

func (s *service) UpdateRuntimeConfig(context.Context, *api.UpdateRuntimeConfigRequest) (*api.UpdateRuntimeConfigResponse, error) {
	return &api.UpdateRuntimeConfigResponse{}, nil
}

func (r *Runtime) hasHandler(name string) bool {
	return name == "" || name == "runc" || slices.Contains(r.options.Handlers, name)
}
