//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/runtimetest/stack"
)

// dial connects to the runtime until the test ends.
func (d *daemon) dial() *grpc.ClientConn {
	d.t.Helper()
	conn, err := connect(d.on)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	return conn
}

// connect returns a gRPC connection to the CRI of a stack.
func connect(s *stack.Stack) (*grpc.ClientConn, error) {
	return grpc.NewClient(s.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// instanceLabel returns the instance label of the sandboxes and containers of the daemon, or ""
// before its first start.
func (d *daemon) instanceLabel() string {
	id, err := os.ReadFile(filepath.Join(d.root(), "instance"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// An inventory lists the sandboxes and containers of one daemon in the runtime.
type inventory struct {
	sandboxes  []*cri.PodSandbox
	containers []*cri.Container
}

// inventory lists the sandboxes and containers of the daemon in the runtime.
func (d *daemon) inventory(ctx context.Context) (inventory, error) {
	conn, err := connect(d.on)
	if err != nil {
		return inventory{}, err
	}
	defer conn.Close()
	ours := map[string]string{runtime.LabelInstance: d.instanceLabel()}
	client := cri.NewRuntimeServiceClient(conn)
	sandboxes, err := client.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: ours}})
	if err != nil {
		return inventory{}, fmt.Errorf("listing sandboxes: %w", err)
	}
	containers, err := client.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{LabelSelector: ours}})
	if err != nil {
		return inventory{}, fmt.Errorf("listing containers: %w", err)
	}
	return inventory{sandboxes.GetItems(), containers.GetContainers()}, nil
}

// A runningContainer is a running container of a pod, according to the runtime.
type runningContainer struct {
	ID      string
	Sandbox string
	PID     int
	Attempt uint32
}

// container returns the running container with these pod and container names. The test fails
// unless exactly one exists.
func (d *daemon) container(pod, container string) runningContainer {
	d.t.Helper()
	all := d.containers(pod, container)
	if len(all) != 1 {
		d.t.Fatalf("got %d running containers %s of pod %s, want 1", len(all), container, pod)
	}
	return all[0]
}

// containers returns the running containers of a pod with the name container, or all of them if
// container is "". A container that exits during the call is omitted.
func (d *daemon) containers(pod, container string) []runningContainer {
	d.t.Helper()
	now, err := d.inventory(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	client := cri.NewRuntimeServiceClient(d.dial())
	var all []runningContainer
	for _, c := range now.containers {
		if c.GetState() != cri.ContainerState_CONTAINER_RUNNING || c.GetLabels()[runtime.LabelPodName] != d.podName(pod) ||
			container != "" && c.GetMetadata().GetName() != container {
			continue
		}
		reply, err := client.ContainerStatus(d.t.Context(), &cri.ContainerStatusRequest{ContainerId: c.GetId(), Verbose: true})
		if err != nil {
			d.t.Fatal(err)
		}
		if pid := d.pidOfStatus(reply.GetInfo()); pid > 0 {
			all = append(all, runningContainer{c.GetId(), c.GetPodSandboxId(), pid, c.GetMetadata().GetAttempt()})
		}
	}
	return all
}

// pidOfStatus returns the process ID in the verbose part of a status, or 0 if no process runs.
func (d *daemon) pidOfStatus(verbose map[string]string) int {
	d.t.Helper()
	var info struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(verbose["info"]), &info); err != nil {
		d.t.Fatal(err)
	}
	return info.PID
}

// sandboxInfo returns the verbose part of the status of a sandbox.
func (d *daemon) sandboxInfo(id string) map[string]string {
	d.t.Helper()
	client := cri.NewRuntimeServiceClient(d.dial())
	reply, err := client.PodSandboxStatus(d.t.Context(), &cri.PodSandboxStatusRequest{PodSandboxId: id, Verbose: true})
	if err != nil {
		d.t.Fatal(err)
	}
	return reply.GetInfo()
}

// announcedResources returns the resources of the last UpdatePodSandboxResources call for a sandbox, as
// reported by containerd 2.4. It returns nil if there was no call.
func (d *daemon) announcedResources(id string) *cri.LinuxContainerResources {
	d.t.Helper()
	var info struct {
		Resources struct {
			Linux *cri.LinuxContainerResources `json:"linux"`
		} `json:"resources"`
	}
	if err := json.Unmarshal([]byte(d.sandboxInfo(id)["info"]), &info); err != nil {
		d.t.Fatal(err)
	}
	return info.Resources.Linux
}

// sandboxPID returns the ID of the process that keeps the namespaces of a sandbox open.
func (d *daemon) sandboxPID(id string) int {
	d.t.Helper()
	pid := d.pidOfStatus(d.sandboxInfo(id))
	if pid <= 0 { // kill(2) with such an ID would signal a process group
		d.t.Fatalf("sandbox %s: got no process, want one", id)
	}
	return pid
}
