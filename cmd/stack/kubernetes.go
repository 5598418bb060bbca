package main

import (
	"context"
	"log/slog"
	"time"

	"podd/runtime/runtimetest/stack/tools"
)

type kubernetesCmd struct{}

// Run builds the missing programs of Kubernetes.
func (kubernetesCmd) Run(ctx context.Context) error {
	startTime := time.Now()
	if _, err := tools.EnsureControlPlane(ctx, slog.Default()); err != nil {
		return err
	}
	printStep("cluster", "a control plane, a kubelet and kubeadm built", time.Since(startTime))
	startTime = time.Now()
	if _, err := tools.EnsureConformance(ctx, slog.Default()); err != nil {
		return err
	}
	printStep("suite", "the end-to-end tests of Kubernetes and their images built", time.Since(startTime))
	return nil
}
