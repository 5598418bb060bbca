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

// dial connects to the CRI of a stack for the time of a test.
func (d *daemon) dial() *grpc.ClientConn {
	d.t.Helper()
	conn, err := connect(d.on)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	return conn
}

func connect(s *stack.Stack) (*grpc.ClientConn, error) {
	return grpc.NewClient(s.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// instance is the label of all that the daemon makes; "" before its first start.
func (d *daemon) instance() string {
	id, err := os.ReadFile(filepath.Join(d.root(), "instance"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// seen is what the runtime has of one daemon.
type seen struct {
	sandboxes  []*cri.PodSandbox
	containers []*cri.Container
}

// look asks the runtime for everything of the daemon.
func (d *daemon) look(ctx context.Context) (seen, error) {
	conn, err := connect(d.on)
	if err != nil {
		return seen{}, err
	}
	defer conn.Close()
	ours := map[string]string{runtime.LabelInstance: d.instance()}
	client := cri.NewRuntimeServiceClient(conn)
	sandboxes, err := client.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: ours}})
	if err != nil {
		return seen{}, fmt.Errorf("listing sandboxes: %w", err)
	}
	containers, err := client.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{LabelSelector: ours}})
	if err != nil {
		return seen{}, fmt.Errorf("listing containers: %w", err)
	}
	return seen{sandboxes.GetItems(), containers.GetContainers()}, nil
}

// running is the one running container of a pod with a name, as the runtime
// has it, with its process.
type running struct {
	ID      string
	Sandbox string
	PID     int
	Attempt uint32
}

// runs returns what runs now under pod and container name. It fails the test
// unless that is exactly one.
func (d *daemon) runs(pod, container string) running {
	d.t.Helper()
	all := d.allRunning(pod, container)
	if len(all) != 1 {
		d.t.Fatalf("%d containers %s of pod %s run, want 1", len(all), container, pod)
	}
	return all[0]
}

// allRunning returns the running containers of a pod: of one name, or all for "". It leaves
// out a container that ends between its listing and the query of its status.
func (d *daemon) allRunning(pod, container string) []running {
	d.t.Helper()
	now, err := d.look(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	client := cri.NewRuntimeServiceClient(d.dial())
	var all []running
	for _, c := range now.containers {
		if c.GetState() != cri.ContainerState_CONTAINER_RUNNING || c.GetLabels()[runtime.LabelPodName] != d.full(pod) ||
			container != "" && c.GetMetadata().GetName() != container {
			continue
		}
		reply, err := client.ContainerStatus(d.t.Context(), &cri.ContainerStatusRequest{ContainerId: c.GetId(), Verbose: true})
		if err != nil {
			d.t.Fatal(err)
		}
		if pid := d.pidIn(reply.GetInfo()); pid > 0 {
			all = append(all, running{c.GetId(), c.GetPodSandboxId(), pid, c.GetMetadata().GetAttempt()})
		}
	}
	return all
}

// pidIn reads the process ID from the verbose part of a status; 0 means that no process runs.
func (d *daemon) pidIn(verbose map[string]string) int {
	d.t.Helper()
	var info struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(verbose["info"]), &info); err != nil {
		d.t.Fatal(err)
	}
	return info.PID
}

// sandboxPID is the process that holds a sandbox's namespaces.
func (d *daemon) sandboxPID(id string) int {
	d.t.Helper()
	client := cri.NewRuntimeServiceClient(d.dial())
	reply, err := client.PodSandboxStatus(d.t.Context(), &cri.PodSandboxStatusRequest{PodSandboxId: id, Verbose: true})
	if err != nil {
		d.t.Fatal(err)
	}
	pid := d.pidIn(reply.GetInfo())
	if pid <= 0 { // kill(2) would signal a process group
		d.t.Fatalf("sandbox %s has no process", id)
	}
	return pid
}
