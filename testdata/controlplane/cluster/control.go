package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StartControllers starts the scheduler, and the controller manager with additional flags. It
// returns when both are ready and the namespace default has its ConfigMap kube-root-ca.crt, which
// one of the last controllers creates. The cluster's CA signs certificates. The controllers also
// act on nodes of earlier tests with agents that have stopped.
func (c *Cluster) StartControllers(ctx context.Context, flags ...string) error {
	if len(c.controllers) > 0 {
		return errors.New("the controllers are running or have failed; call StopControllers first")
	}
	ca := c.authority.identity
	manager := append([]string{
		"--service-account-private-key-file", ca.key, "--root-ca-file", ca.cert,
		"--cluster-signing-cert-file", ca.cert, "--cluster-signing-key-file", ca.key,
		"--controllers", "*,bootstrapsigner,tokencleaner", "--use-service-account-credentials",
	}, flags...)
	if err := c.startController(ctx, "kube-controller-manager", "/healthz", manager...); err != nil {
		return err
	}
	if err := c.startController(ctx, "kube-scheduler", "/readyz"); err != nil {
		return err
	}
	return c.waitForControllers(ctx)
}

// startController starts a program and waits until its endpoint at the path health is ready. The
// program's user in the cluster has the name "system:" + name.
func (c *Cluster) startController(ctx context.Context, name, health string, flags ...string) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	server, err := c.authority.issue(name, nil, loopback)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.dir, name+".kubeconfig")
	if err := c.WriteKubeconfig(kubeconfig, "system:"+name); err != nil {
		return err
	}
	p, err := c.startProgram(filepath.Join(c.programs, name), append([]string{
		"--kubeconfig", kubeconfig, "--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig,
		"--bind-address", loopback.String(), "--secure-port", ports[0], "--tls-cert-file", server.cert, "--tls-private-key-file", server.key,
		"--leader-elect=false", "--kube-api-qps", "1000", "--kube-api-burst", "1000",
	}, flags...)...)
	if err != nil {
		return err
	}
	c.controllers = append(c.controllers, p)
	return p.waitUntilReady(ctx, c.admin, "https://"+loopback.String()+":"+ports[0]+health)
}

// waitForControllers waits until one of the last controllers has created the root certificate of
// namespace default.
func (c *Cluster) waitForControllers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		_, err := c.Client.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("waiting for the root certificate of namespace default: %w", err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the root certificate of namespace default: %w\n%s", ctx.Err(), c.controllers[0].logTail())
		}
	}
}

// StopControllers stops the programs that StartControllers has started. Objects that they have
// created remain.
func (c *Cluster) StopControllers() error {
	err := c.endProcesses((*process).stop, c.controllers...)
	c.controllers = nil
	return err
}
