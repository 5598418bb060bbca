package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// behavior is the behavior of a command that the kubelet runs in a container.
type behavior struct {
	failsOnce bool // whether the command fails in the first attempt of its container
	duration  time.Duration
}

// setCommand changes the behavior of a command in a pod. word is the first word of the command.
func (m *memoryRuntime) setCommand(pod, word string, change func(*behavior)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.commands[pod+"/"+word] == nil {
		m.commands[pod+"/"+word] = &behavior{}
	}
	change(m.commands[pod+"/"+word])
}

// intercept records each request when it arrives.
func (m *memoryRuntime) intercept(ctx context.Context, q any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	m.mu.Lock()
	if pod, line := m.line(q); line != "" && !isRepeated(m.calls[pod], line) {
		m.calls[pod] = append(m.calls[pod], line)
	}
	m.mu.Unlock()
	return handle(ctx, q)
}

// isRepeated reports whether line repeats an earlier line. The earlier line is either a command in
// the same attempt of a container, or the last element of lines.
func isRepeated(lines []string, line string) bool {
	words := strings.Fields(line)
	for i, earlierLine := range slices.Backward(lines) {
		switch {
		case earlierLine == line && (i == len(lines)-1 || words[0] == "ExecSync"):
			return true
		case len(words) > 1 && strings.HasPrefix(earlierLine, "CreateContainer "+words[1]+" "):
			return false
		}
	}
	return false
}

// line returns the line of the recording for a request, and the name of the pod. It returns "" for
// a request that is not recorded, such as a command in an exited container, because such requests
// depend on timing. The caller must hold the lock.
func (m *memoryRuntime) line(q any) (pod, line string) {
	switch q := q.(type) {
	case *api.RunPodSandboxRequest:
		return q.Config.Metadata.Name, "RunPodSandbox"
	case *api.StopPodSandboxRequest:
		if s := m.sandboxes[q.PodSandboxId]; s.GetState() == api.PodSandboxState_SANDBOX_READY {
			return s.GetMetadata().GetName(), "StopPodSandbox"
		}
	case *api.CreateContainerRequest:
		return q.SandboxConfig.Metadata.Name, fmt.Sprintf("CreateContainer %s %d", q.Config.Metadata.Name, q.Config.Metadata.Attempt)
	case *api.StartContainerRequest:
		return m.lineOf("StartContainer", q.ContainerId, "")
	case *api.StopContainerRequest:
		return m.lineOf("StopContainer", q.ContainerId, fmt.Sprintf(" within %ds", q.Timeout))
	case *api.ExecSyncRequest:
		if m.containers[q.ContainerId].GetState() != api.ContainerState_CONTAINER_RUNNING {
			return "", ""
		}
		return m.lineOf("ExecSync", q.ContainerId, fmt.Sprintf(" %q within %ds", q.Cmd, q.Timeout))
	case *api.UpdatePodSandboxResourcesRequest:
		return m.sandboxes[q.PodSandboxId].GetMetadata().GetName(), "UpdatePodSandboxResources " + toJSON(q.Resources)
	case *api.UpdateContainerResourcesRequest:
		return m.lineOf("UpdateContainerResources", q.ContainerId, " "+toJSON(q.Linux))
	}
	return "", ""
}

func (m *memoryRuntime) lineOf(method, id, arguments string) (pod, line string) {
	c := m.containers[id].GetMetadata()
	return m.sandboxes[m.sandboxIDs[id]].GetMetadata().GetName(), fmt.Sprintf("%s %s%s", method, c.GetName(), arguments)
}

// newCalls returns the lines since the last call of newCalls.
func (m *memoryRuntime) newCalls(pod string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.calls[pod]
	m.calls[pod] = nil
	return calls
}

func (m *memoryRuntime) countCalls(pod string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.calls[pod])
}

// exit makes a container of a running pod exit.
func (m *memoryRuntime) exit(pod, container string, code int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, c := range m.containers {
		if c.Metadata.Name == container && m.sandboxes[m.sandboxIDs[id]].GetMetadata().GetName() == pod {
			setExited(c, code)
		}
	}
}

// ExecSync runs a command with the behavior that was set for its first word. Other commands
// succeed at once.
func (m *memoryRuntime) ExecSync(ctx context.Context, q *api.ExecSyncRequest) (*api.ExecSyncResponse, error) {
	m.mu.Lock()
	c := m.containers[q.ContainerId]
	var p behavior
	if set := m.commands[m.sandboxes[m.sandboxIDs[q.ContainerId]].GetMetadata().GetName()+"/"+q.Cmd[0]]; set != nil {
		p = *set
	}
	m.mu.Unlock()
	if c == nil || c.State != api.ContainerState_CONTAINER_RUNNING {
		return nil, status.Errorf(codes.Unknown, "container %s is not running", q.ContainerId)
	}
	limit := time.Duration(q.Timeout) * time.Second
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(p.duration):
	case <-after(limit):
		return nil, status.Errorf(codes.DeadlineExceeded, "timeout %s exceeded", limit)
	}
	if p.failsOnce && c.Metadata.Attempt == 0 {
		return &api.ExecSyncResponse{ExitCode: 1, Stderr: []byte(strings.Join(q.Cmd, " ") + " failed")}, nil
	}
	return &api.ExecSyncResponse{}, nil
}

// after is like time.After, but never sends if d is 0.
func after(d time.Duration) <-chan time.Time {
	if d == 0 {
		return nil
	}
	return time.After(d)
}

// UpdatePodSandboxResources accepts all resources.
func (m *memoryRuntime) UpdatePodSandboxResources(context.Context, *api.UpdatePodSandboxResourcesRequest) (*api.UpdatePodSandboxResourcesResponse, error) {
	return &api.UpdatePodSandboxResourcesResponse{}, nil
}

// UpdateContainerResources changes the resources in the status.
func (m *memoryRuntime) UpdateContainerResources(_ context.Context, q *api.UpdateContainerResourcesRequest) (*api.UpdateContainerResourcesResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.containers[q.ContainerId]; c != nil {
		c.Resources = &api.ContainerResources{Linux: q.Linux}
	}
	return &api.UpdateContainerResourcesResponse{}, nil
}
