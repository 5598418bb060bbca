package runtimetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (s *service) ListContainers(_ context.Context, q *api.ListContainersRequest) (*api.ListContainersResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &api.ListContainersResponse{}
	f := q.GetFilter()
	for _, c := range s.containers {
		if f.GetId() != "" && f.GetId() != c.id || f.GetState() != nil && f.State.State != c.state ||
			f.GetPodSandboxId() != "" && f.GetPodSandboxId() != c.sandbox.id ||
			!matchesLabels(f.GetLabelSelector(), c.config.GetLabels()) {
			continue
		}
		response.Containers = append(response.Containers, &api.Container{
			Id: c.id, PodSandboxId: c.sandbox.id, Metadata: c.config.GetMetadata(), Image: c.config.GetImage(),
			ImageRef: c.imageID, ImageId: c.imageID, State: c.state, CreatedAt: c.createdAt.UnixNano(),
			Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		})
	}
	return response, nil
}

func (s *service) ContainerStatus(_ context.Context, q *api.ContainerStatusRequest) (*api.ContainerStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.containers[q.GetContainerId()]
	if c == nil {
		return nil, notFoundError("container", q.GetContainerId())
	}
	st := c.status()
	if s.exitFilesHidden && st.State == api.ContainerState_CONTAINER_EXITED {
		st.FinishedAt, st.ExitCode, st.Reason, st.Message = 0, -1, "Error", ""
	}
	return &api.ContainerStatusResponse{Status: st}, nil
}

func (c *container) status() *api.ContainerStatus {
	st := &api.ContainerStatus{
		Id: c.id, Metadata: c.config.GetMetadata(), State: c.state, CreatedAt: c.createdAt.UnixNano(),
		Image: &api.ImageSpec{Image: c.config.GetImage().GetImage()}, ImageRef: c.imageRef, ImageId: c.imageID,
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(), LogPath: c.logFile(),
		Resources: &api.ContainerResources{Linux: c.resources}, User: c.user(), Mounts: c.config.GetMounts(),
	}
	if !c.startedAt.IsZero() {
		st.StartedAt = c.startedAt.UnixNano()
	}
	if c.state == api.ContainerState_CONTAINER_EXITED {
		st.FinishedAt, st.ExitCode, st.Reason, st.Message = c.finishedAt.UnixNano(), c.code, c.reason, c.message
	}
	return st
}

// user returns the user of the security context. As in containerd, the primary group is the
// first of the supplemental groups.
func (c *container) user() *api.ContainerUser {
	sc := c.config.GetLinux().GetSecurityContext()
	u := &api.LinuxContainerUser{Uid: sc.GetRunAsUser().GetValue(), Gid: sc.GetRunAsGroup().GetValue()}
	u.SupplementalGroups = append([]int64{u.Gid}, sc.GetSupplementalGroups()...)
	return &api.ContainerUser{Linux: u}
}

func (s *service) UpdateContainerResources(_ context.Context, q *api.UpdateContainerResourcesRequest) (*api.UpdateContainerResourcesResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.containers[q.GetContainerId()]
	if c == nil {
		return nil, notFoundError("container", q.GetContainerId())
	}
	c.resources = q.GetLinux()
	return &api.UpdateContainerResourcesResponse{}, nil
}

func (s *service) ContainerStats(_ context.Context, q *api.ContainerStatsRequest) (*api.ContainerStatsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.containers[q.GetContainerId()]
	if c == nil {
		return nil, notFoundError("container", q.GetContainerId())
	}
	return &api.ContainerStatsResponse{Stats: c.stats()}, nil
}

func (c *container) stats() *api.ContainerStats {
	return &api.ContainerStats{
		Attributes: &api.ContainerAttributes{
			Id: c.id, Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		},
		Memory:        &api.MemoryUsage{UsageBytes: &api.UInt64Value{Value: c.memory}, WorkingSetBytes: &api.UInt64Value{Value: c.memory}},
		WritableLayer: &api.FilesystemUsage{Timestamp: time.Now().UnixNano(), UsedBytes: &api.UInt64Value{}},
	}
}

func (s *service) ListContainerStats(_ context.Context, q *api.ListContainerStatsRequest) (*api.ListContainerStatsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &api.ListContainerStatsResponse{}
	f := q.GetFilter()
	for _, c := range s.containers {
		if f.GetId() != "" && f.GetId() != c.id || f.GetPodSandboxId() != "" && f.GetPodSandboxId() != c.sandbox.id ||
			!matchesLabels(f.GetLabelSelector(), c.config.GetLabels()) {
			continue
		}
		response.Stats = append(response.Stats, c.stats())
	}
	return response, nil
}

func (s *service) ReopenContainerLog(_ context.Context, q *api.ReopenContainerLogRequest) (*api.ReopenContainerLogResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.containers[q.GetContainerId()]
	if c == nil {
		return nil, notFoundError("container", q.GetContainerId())
	}
	if c.state != api.ContainerState_CONTAINER_RUNNING {
		return nil, fmt.Errorf("container is not running")
	}
	return &api.ReopenContainerLogResponse{}, c.appendLog("")
}

// logFile returns the path of the log, or "" for a container without a log.
func (c *container) logFile() string {
	dir, path := c.sandbox.config.GetLogDirectory(), c.config.GetLogPath()
	if dir == "" || path == "" {
		return ""
	}
	return filepath.Join(dir, path)
}

// writeLog writes the program's output in CRI's format.
func (c *container) writeLog() error { return c.appendLog(c.program.Output) }

func (c *container) appendLog(output string) error {
	path := c.logFile()
	if path == "" {
		return nil
	}
	var lines strings.Builder
	now := time.Now().Format(time.RFC3339Nano)
	for line := range strings.Lines(output) {
		fmt.Fprintf(&lines, "%s stdout F %s\n", now, strings.TrimSuffix(line, "\n"))
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("failed to create containerd task: failed to create container loggers: %w", err)
	}
	_, err = f.WriteString(lines.String())
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
