package runtimetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A sandbox is ready until it is stopped or killed.
//
//	RunPodSandbox ──▶ ready ──StopPodSandbox, KillSandbox──▶ not ready ──RemovePodSandbox──▶ removed
type sandbox struct {
	id, name  string
	config    *api.PodSandboxConfig // never modified
	handler   string
	createdAt time.Time
	isReady   bool
	ip        string
}

func sandboxName(m *api.PodSandboxMetadata) string {
	return fmt.Sprintf("%s_%s_%s_%d", m.GetName(), m.GetNamespace(), m.GetUid(), m.GetAttempt())
}

func usesHostNetwork(c *api.PodSandboxConfig) bool {
	return c.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == api.NamespaceMode_NODE
}

func (s *service) RunPodSandbox(ctx context.Context, q *api.RunPodSandboxRequest) (*api.RunPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.GetConfig().GetMetadata() == nil {
		return nil, errors.New("sandbox config must include metadata")
	}
	sb := &sandbox{id: s.newIDLocked(), name: sandboxName(q.Config.Metadata), config: q.Config, handler: q.RuntimeHandler, createdAt: time.Now(), isReady: true}
	if has := s.sandboxes[s.names["sandbox"+sb.name]]; has != nil && s.options.CRIO {
		return &api.RunPodSandboxResponse{PodSandboxId: has.id}, nil
	}
	if err := s.reserveNameLocked(ctx, "sandbox", sb.name, sb.id); err != nil {
		return nil, err
	}
	if err := cmp.Or(s.waitMidCallLocked(ctx), s.assignAddressLocked(sb)); err != nil {
		s.releaseNameLocked("sandbox", sb.name)
		return nil, err
	}
	s.sandboxes[sb.id] = sb
	s.announceLocked(api.ContainerEventType_CONTAINER_CREATED_EVENT, sb.id, sb)
	s.announceLocked(api.ContainerEventType_CONTAINER_STARTED_EVENT, sb.id, sb)
	return &api.RunPodSandboxResponse{PodSandboxId: sb.id}, nil
}

// assignAddressLocked assigns an address to a sandbox. It returns an error if the network is not
// ready.
func (r *Runtime) assignAddressLocked(sb *sandbox) error {
	if !r.hasHandler(sb.handler) {
		return fmt.Errorf("unable to get OCI runtime for sandbox %q: no runtime for %q is configured", sb.id, sb.handler)
	}
	if usesHostNetwork(sb.config) {
		return nil
	}
	if r.networkFailure != "" {
		return fmt.Errorf("failed to setup network for sandbox %q: cni plugin not initialized", sb.id)
	}
	sb.ip = fmt.Sprintf("10.88.%d.%d", r.sequence>>8&0xff, r.sequence&0xff)
	return nil
}

func (s *service) StopPodSandbox(ctx context.Context, q *api.StopPodSandboxRequest) (*api.StopPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sb := s.sandboxes[q.GetPodSandboxId()]; sb != nil {
		if err := s.stopContainersLocked(ctx, sb); err != nil {
			return nil, err
		}
		s.stopSandboxLocked(sb)
	}
	return &api.StopPodSandboxResponse{}, nil
}

// UpdatePodSandboxResources only checks that the sandbox exists, because a runtime changes no limit in
// this call.
func (s *service) UpdatePodSandboxResources(_ context.Context, q *api.UpdatePodSandboxResourcesRequest) (*api.UpdatePodSandboxResourcesResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sandboxes[q.GetPodSandboxId()] == nil {
		return nil, status.Error(codes.NotFound, "failed to find sandbox: not found")
	}
	return &api.UpdatePodSandboxResourcesResponse{}, nil
}

func (r *Runtime) stopSandboxLocked(sb *sandbox) {
	for _, c := range r.containersOfLocked(sb.id) {
		r.exitLocked(c, 137, "")
	}
	if sb.isReady {
		sb.isReady = false
		r.announceLocked(api.ContainerEventType_CONTAINER_STOPPED_EVENT, sb.id, sb)
	}
	sb.ip = ""
}

func (s *service) RemovePodSandbox(ctx context.Context, q *api.RemovePodSandboxRequest) (*api.RemovePodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sb := s.sandboxes[q.GetPodSandboxId()]
	if sb == nil {
		return &api.RemovePodSandboxResponse{}, nil
	}
	if err := s.stopContainersLocked(ctx, sb); err != nil {
		return nil, err
	}
	s.stopSandboxLocked(sb)
	for _, c := range s.containersOfLocked(sb.id) {
		s.removeLocked(c)
	}
	s.announceLocked(api.ContainerEventType_CONTAINER_DELETED_EVENT, sb.id, sb)
	delete(s.sandboxes, sb.id)
	s.releaseNameLocked("sandbox", sb.name)
	return &api.RemovePodSandboxResponse{}, nil
}

func (s *service) PodSandboxStatus(_ context.Context, q *api.PodSandboxStatusRequest) (*api.PodSandboxStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sb := s.sandboxes[q.GetPodSandboxId()]
	if sb == nil {
		return nil, status.Errorf(codes.NotFound, "an error occurred when try to find sandbox: not found")
	}
	return &api.PodSandboxStatusResponse{Status: sb.status()}, nil
}

func (s *service) ListPodSandbox(_ context.Context, q *api.ListPodSandboxRequest) (*api.ListPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &api.ListPodSandboxResponse{}
	f := q.GetFilter()
	for _, sb := range s.sandboxes {
		if f.GetId() != "" && f.GetId() != sb.id || f.GetState() != nil && f.State.State != sb.state() ||
			!matchesLabels(f.GetLabelSelector(), sb.config.GetLabels()) {
			continue
		}
		response.Items = append(response.Items, &api.PodSandbox{
			Id: sb.id, Metadata: sb.config.GetMetadata(), State: sb.state(), CreatedAt: sb.createdAt.UnixNano(),
			Labels: sb.config.GetLabels(), Annotations: sb.config.GetAnnotations(), RuntimeHandler: sb.handler,
		})
	}
	return response, nil
}

func (sb *sandbox) state() api.PodSandboxState {
	if sb.isReady {
		return api.PodSandboxState_SANDBOX_READY
	}
	return api.PodSandboxState_SANDBOX_NOTREADY
}

func (sb *sandbox) status() *api.PodSandboxStatus {
	return &api.PodSandboxStatus{
		Id: sb.id, Metadata: sb.config.GetMetadata(), State: sb.state(), CreatedAt: sb.createdAt.UnixNano(),
		Network: &api.PodSandboxNetworkStatus{Ip: sb.ip}, Labels: sb.config.GetLabels(),
		Annotations: sb.config.GetAnnotations(), RuntimeHandler: sb.handler,
		Linux: &api.LinuxPodSandboxStatus{Namespaces: &api.Namespace{Options: sb.config.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
	}
}

func matchesLabels(selector, labels map[string]string) bool {
	for k, v := range selector {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// KillSandbox kills a sandbox and its containers without a CRI call, like a power cut or the
// exit of the first process of the sandbox. It returns false if the sandbox is not ready.
func (r *Runtime) KillSandbox(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	sb := r.sandboxes[id]
	if sb == nil || !sb.isReady {
		return false
	}
	ip := sb.ip
	r.stopSandboxLocked(sb)
	sb.ip = ip // its address stays reserved until StopPodSandbox
	return true
}
