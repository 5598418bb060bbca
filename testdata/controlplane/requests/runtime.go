package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// memoryRuntime is an in-memory container runtime that does only what a kubelet needs: it has every
// image, every start succeeds, and init containers exit at once with 0. It records the requests.
type memoryRuntime struct {
	api.UnimplementedRuntimeServiceServer
	api.UnimplementedImageServiceServer

	mu          sync.Mutex // guards all following fields
	objectCount int
	sandboxes   map[string]*api.PodSandboxStatus
	containers  map[string]*api.ContainerStatus
	sandboxIDs  map[string]string // by container ID
	requests    map[string]*podRequests
	exitsAtOnce map[string]bool      // whether an init container exits at once, by pod and container name
	calls       map[string][]string  // lines of the recording, by pod; see scenarios
	commands    map[string]*behavior // by pod and first word of the command
}

// podRequests contains the requests of a kubelet for one pod.
type podRequests struct {
	Handler    string
	Sandbox    *api.PodSandboxConfig
	Containers []*api.ContainerConfig
	Pulls      []pull
	Files      map[string][]string
}

// pull is one attempt to pull an image.
type pull struct {
	Image string          `json:"image"`
	Auth  *api.AuthConfig `json:"auth,omitempty"`
}

func newMemoryRuntime() *memoryRuntime {
	return &memoryRuntime{
		sandboxes: map[string]*api.PodSandboxStatus{}, containers: map[string]*api.ContainerStatus{},
		sandboxIDs: map[string]string{}, requests: map[string]*podRequests{}, exitsAtOnce: map[string]bool{},
		calls: map[string][]string{}, commands: map[string]*behavior{},
	}
}

// serve serves on a Unix socket until the program exits.
func (m *memoryRuntime) serve(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	s := grpc.NewServer(grpc.UnaryInterceptor(m.intercept))
	api.RegisterRuntimeServiceServer(s, m)
	api.RegisterImageServiceServer(s, m)
	go func() { _ = s.Serve(l) }()
	return nil
}

func (m *memoryRuntime) Version(context.Context, *api.VersionRequest) (*api.VersionResponse, error) {
	return &api.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: "v2.1.0", RuntimeApiVersion: "v1"}, nil
}

func (m *memoryRuntime) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	return &api.StatusResponse{
		Status: &api.RuntimeStatus{Conditions: []*api.RuntimeCondition{
			{Type: api.RuntimeReady, Status: true}, {Type: api.NetworkReady, Status: true},
		}},
		RuntimeHandlers: []*api.RuntimeHandler{
			{Name: "", Features: &api.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: true}}, {Name: "kata"}, {Name: "plain"},
		},
		Features: &api.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}, nil
}

func (m *memoryRuntime) RuntimeConfig(context.Context, *api.RuntimeConfigRequest) (*api.RuntimeConfigResponse, error) {
	return &api.RuntimeConfigResponse{Linux: &api.LinuxRuntimeConfiguration{CgroupDriver: api.CgroupDriver_CGROUPFS}}, nil
}

func (m *memoryRuntime) newID(kind string) string {
	m.objectCount++
	return fmt.Sprintf("%s%04d", kind, m.objectCount)
}

func (m *memoryRuntime) RunPodSandbox(_ context.Context, q *api.RunPodSandboxRequest) (*api.RunPodSandboxResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, c := m.newID("sandbox"), q.Config
	m.sandboxes[id] = &api.PodSandboxStatus{
		Id: id, Metadata: c.Metadata, State: api.PodSandboxState_SANDBOX_READY, CreatedAt: time.Now().UnixNano(),
		Network: &api.PodSandboxNetworkStatus{Ip: "10.88.0.3", AdditionalIps: []*api.PodIP{{Ip: "fd00::3"}}},
		Linux:   &api.LinuxPodSandboxStatus{Namespaces: &api.Namespace{Options: c.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
		Labels:  c.Labels, Annotations: c.Annotations, RuntimeHandler: q.RuntimeHandler,
	}
	if m.requests[c.Metadata.Name] == nil {
		m.requests[c.Metadata.Name] = &podRequests{Handler: q.RuntimeHandler, Sandbox: c}
	}
	return &api.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (m *memoryRuntime) StopPodSandbox(_ context.Context, q *api.StopPodSandboxRequest) (*api.StopPodSandboxResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sandboxes[q.PodSandboxId]; s != nil {
		s.State = api.PodSandboxState_SANDBOX_NOTREADY
	}
	for id, c := range m.containers {
		if m.sandboxIDs[id] == q.PodSandboxId {
			setExited(c, 137)
		}
	}
	return &api.StopPodSandboxResponse{}, nil
}

func (m *memoryRuntime) RemovePodSandbox(_ context.Context, q *api.RemovePodSandboxRequest) (*api.RemovePodSandboxResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sandboxes, q.PodSandboxId)
	return &api.RemovePodSandboxResponse{}, nil
}

func (m *memoryRuntime) PodSandboxStatus(_ context.Context, q *api.PodSandboxStatusRequest) (*api.PodSandboxStatusResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sandboxes[q.PodSandboxId]
	if s == nil {
		return nil, fmt.Errorf("no sandbox %s", q.PodSandboxId)
	}
	out := proto.Clone(s).(*api.PodSandboxStatus)
	return &api.PodSandboxStatusResponse{Status: out}, nil
}

func (m *memoryRuntime) ListPodSandbox(_ context.Context, q *api.ListPodSandboxRequest) (*api.ListPodSandboxResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := &api.ListPodSandboxResponse{}
	for id, s := range m.sandboxes {
		if f := q.GetFilter(); f != nil && (f.Id != "" && f.Id != id || f.State != nil && f.State.State != s.State || !matchesSelector(s.Labels, f.LabelSelector)) {
			continue
		}
		out.Items = append(out.Items, &api.PodSandbox{
			Id: id, Metadata: s.Metadata, State: s.State, CreatedAt: s.CreatedAt, Labels: s.Labels, Annotations: s.Annotations, RuntimeHandler: s.RuntimeHandler,
		})
	}
	return out, nil
}

func (m *memoryRuntime) CreateContainer(_ context.Context, q *api.CreateContainerRequest) (*api.CreateContainerResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, c := m.newID("container"), q.Config
	m.containers[id] = &api.ContainerStatus{
		Id: id, Metadata: c.Metadata, State: api.ContainerState_CONTAINER_CREATED, CreatedAt: time.Now().UnixNano(),
		Image: c.Image, ImageRef: c.Image.GetImage(), Labels: c.Labels, Annotations: c.Annotations, Mounts: c.Mounts, LogPath: c.LogPath,
		Resources: &api.ContainerResources{Linux: c.GetLinux().GetResources()},
	}
	m.sandboxIDs[id] = q.PodSandboxId
	if r := m.requests[q.SandboxConfig.GetMetadata().GetName()]; r != nil && c.Metadata.Attempt == 0 {
		r.Containers = append(r.Containers, c)
	}
	return &api.CreateContainerResponse{ContainerId: id}, nil
}

// expect prepares the runtime for a pod with this name that the kubelet will create.
func (m *memoryRuntime) expect(name string, pod map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spec := pod["spec"].(map[string]any)
	init, _ := spec["initContainers"].([]any)
	for _, c := range init {
		if c := c.(map[string]any); c["restartPolicy"] == nil {
			m.exitsAtOnce[name+"/"+c["name"].(string)] = true
		}
	}
}

// createdCount returns the number of sandboxes and containers that the kubelet has created.
func (m *memoryRuntime) createdCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objectCount
}

// StartContainer starts a container. An init container that is not a sidecar exits at once.
func (m *memoryRuntime) StartContainer(_ context.Context, q *api.StartContainerRequest) (*api.StartContainerResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.containers[q.ContainerId]
	if c == nil {
		return nil, fmt.Errorf("no container %s", q.ContainerId)
	}
	c.State, c.StartedAt = api.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
	if pod := m.sandboxes[m.sandboxIDs[q.ContainerId]]; m.exitsAtOnce[pod.GetMetadata().GetName()+"/"+c.Metadata.Name] {
		setExited(c, 0)
	}
	return &api.StartContainerResponse{}, nil
}

func setExited(c *api.ContainerStatus, code int32) {
	if c.State != api.ContainerState_CONTAINER_EXITED {
		c.State, c.FinishedAt, c.ExitCode = api.ContainerState_CONTAINER_EXITED, time.Now().UnixNano(), code
	}
}

func (m *memoryRuntime) StopContainer(_ context.Context, q *api.StopContainerRequest) (*api.StopContainerResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.containers[q.ContainerId]; c != nil {
		setExited(c, 137)
	}
	return &api.StopContainerResponse{}, nil
}

func (m *memoryRuntime) RemoveContainer(_ context.Context, q *api.RemoveContainerRequest) (*api.RemoveContainerResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.containers, q.ContainerId)
	return &api.RemoveContainerResponse{}, nil
}

func (m *memoryRuntime) ContainerStatus(_ context.Context, q *api.ContainerStatusRequest) (*api.ContainerStatusResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.containers[q.ContainerId]
	if c == nil {
		return nil, fmt.Errorf("no container %s", q.ContainerId)
	}
	out := proto.Clone(c).(*api.ContainerStatus)
	return &api.ContainerStatusResponse{Status: out}, nil
}

func (m *memoryRuntime) ListContainers(_ context.Context, q *api.ListContainersRequest) (*api.ListContainersResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := &api.ListContainersResponse{}
	for id, c := range m.containers {
		if f := q.GetFilter(); f != nil && (f.Id != "" && f.Id != id || f.State != nil && f.State.State != c.State ||
			f.PodSandboxId != "" && f.PodSandboxId != m.sandboxIDs[id] || !matchesSelector(c.Labels, f.LabelSelector)) {
			continue
		}
		out.Containers = append(out.Containers, &api.Container{
			Id: id, PodSandboxId: m.sandboxIDs[id], Metadata: c.Metadata, Image: c.Image, ImageRef: c.ImageRef, State: c.State,
			CreatedAt: c.CreatedAt, Labels: c.Labels, Annotations: c.Annotations,
		})
	}
	return out, nil
}

func matchesSelector(labels, selector map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func (m *memoryRuntime) UpdateRuntimeConfig(context.Context, *api.UpdateRuntimeConfigRequest) (*api.UpdateRuntimeConfigResponse, error) {
	return &api.UpdateRuntimeConfigResponse{}, nil
}

func (m *memoryRuntime) ListContainerStats(context.Context, *api.ListContainerStatsRequest) (*api.ListContainerStatsResponse, error) {
	return &api.ListContainerStatsResponse{}, nil
}

func (m *memoryRuntime) ListPodSandboxStats(context.Context, *api.ListPodSandboxStatsRequest) (*api.ListPodSandboxStatsResponse, error) {
	return &api.ListPodSandboxStatsResponse{}, nil
}

// imageID is the ID of every image.
const imageID = "sha256:feed"

func (m *memoryRuntime) ImageStatus(_ context.Context, q *api.ImageStatusRequest) (*api.ImageStatusResponse, error) {
	return &api.ImageStatusResponse{Image: &api.Image{Id: imageID, RepoTags: []string{q.GetImage().GetImage()}, Uid: &api.Int64Value{Value: 0}, Size: 1}}, nil
}

func (m *memoryRuntime) ListImages(context.Context, *api.ListImagesRequest) (*api.ListImagesResponse, error) {
	return &api.ListImagesResponse{}, nil
}

// PullImage succeeds, unless the user name of the credentials begins with "wrong".
func (m *memoryRuntime) PullImage(_ context.Context, q *api.PullImageRequest) (*api.PullImageResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.requests[q.GetSandboxConfig().GetMetadata().GetName()]; r != nil {
		r.Pulls = append(r.Pulls, pull{q.GetImage().GetImage(), q.Auth})
	}
	if strings.HasPrefix(q.GetAuth().GetUsername(), "wrong") {
		return nil, status.Error(codes.Unknown, "failed to authorize: 401 Unauthorized")
	}
	return &api.PullImageResponse{ImageRef: imageID}, nil
}

func (m *memoryRuntime) ImageFsInfo(context.Context, *api.ImageFsInfoRequest) (*api.ImageFsInfoResponse, error) {
	fs := []*api.FilesystemUsage{{Timestamp: time.Now().UnixNano(), FsId: &api.FilesystemIdentifier{Mountpoint: "/"}, UsedBytes: &api.UInt64Value{}, InodesUsed: &api.UInt64Value{}}}
	return &api.ImageFsInfoResponse{ImageFilesystems: fs, ContainerFilesystems: fs}, nil
}
