package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RemovePods stops and removes every sandbox and its containers.
func (s *Stack) RemovePods(ctx context.Context) error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	client := runtimev1.NewRuntimeServiceClient(conn)
	reply, err := client.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("listing sandboxes: %w", err)
	}
	var errs []error
	for _, sandbox := range reply.GetItems() {
		errs = append(errs, removePod(ctx, client, sandbox.GetId()))
	}
	return errors.Join(errs...)
}

// removePod removes a sandbox. It kills the containers first, because CRI-O's StopPodSandbox waits
// for running containers until the timeout of the call. It also waits for a stop in progress.
func removePod(ctx context.Context, client runtimev1.RuntimeServiceClient, id string) error {
	inside, err := client.ListContainers(ctx, &runtimev1.ListContainersRequest{Filter: &runtimev1.ContainerFilter{PodSandboxId: id}})
	if err != nil {
		return fmt.Errorf("listing the containers of sandbox %s: %w", id, err)
	}
	for _, c := range inside.GetContainers() {
		if _, err := client.StopContainer(ctx, &runtimev1.StopContainerRequest{ContainerId: c.GetId()}); err != nil {
			return fmt.Errorf("killing container %s: %w", c.GetId(), err)
		}
	}
	if _, err := client.StopPodSandbox(ctx, &runtimev1.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("stopping sandbox %s: %w", id, err)
	}
	if _, err := client.RemovePodSandbox(ctx, &runtimev1.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("removing sandbox %s: %w", id, err)
	}
	return nil
}

// runcRoots lists runc's state directories for containerd and CRI-O.
var runcRoots = []string{"runc/k8s.io", "runc/crio"}

// ContainerPID returns the process ID of a running container's first process. It reads runc's
// state, because this also works while the runtime is stopped.
func (s *Stack) ContainerPID(id string) (int, error) {
	for _, root := range runcRoots {
		text, err := os.ReadFile(filepath.Join(s.privateDir(), root, id, "state.json"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var state struct {
			PID int `json:"init_process_pid"`
		}
		if err == nil {
			err = json.Unmarshal(text, &state)
		}
		if err != nil {
			return 0, fmt.Errorf("finding the process of container %s: %w", id, err)
		}
		if state.PID <= 0 {
			break
		}
		return state.PID, nil
	}
	return 0, fmt.Errorf("finding the process of container %s: runc has no such container", id)
}

// Freeze freezes the processes of a container until the container is killed or resumed.
func (s *Stack) Freeze(ctx context.Context, id string) error {
	for _, root := range runcRoots {
		dir := filepath.Join(s.privateDir(), root)
		if _, err := os.Stat(filepath.Join(dir, id)); err != nil {
			continue
		}
		if out, err := exec.CommandContext(ctx, s.Tools.Runc, "--root", dir, "pause", id).CombinedOutput(); err != nil {
			return fmt.Errorf("freezing container %s: %w: %s", id, err, out)
		}
		return nil
	}
	return fmt.Errorf("freezing container %s: runc has no such container", id)
}
