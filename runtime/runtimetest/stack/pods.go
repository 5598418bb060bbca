package stack

import (
	"context"
	"errors"
	"fmt"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RemovePods stops and removes every sandbox, and with it its containers.
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

func removePod(ctx context.Context, client runtimev1.RuntimeServiceClient, id string) error {
	if _, err := client.StopPodSandbox(ctx, &runtimev1.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("stopping sandbox %s: %w", id, err)
	}
	if _, err := client.RemovePodSandbox(ctx, &runtimev1.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("removing sandbox %s: %w", id, err)
	}
	return nil
}
