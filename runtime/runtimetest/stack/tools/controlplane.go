package tools

import (
	"context"
	"log/slog"
	"path/filepath"
)

// ControlPlane is a cluster's control plane for tests, of testdata/controlplane.
type ControlPlane struct {
	Module string // the directory of its module, which has program up
	// Programs is the directory of etcd, kube-apiserver, kube-controller-manager and
	// kube-scheduler, and of kubeadm and kubelet, all static.
	Programs string
}

// EnsureControlPlane builds the programs if they are not there, which takes minutes.
func EnsureControlPlane(ctx context.Context, log *slog.Logger) (ControlPlane, error) {
	root, err := moduleRoot()
	if err != nil {
		return ControlPlane{}, err
	}
	module := filepath.Join(root, "testdata", "controlplane")
	c, err := openCache(log, kubernetesLock)
	if err != nil {
		return ControlPlane{}, err
	}
	if err := c.lock(ctx); err != nil {
		return ControlPlane{}, err
	}
	defer c.unlock()
	hash, err := moduleHash(ctx, module)
	if err != nil {
		return ControlPlane{}, err
	}
	dir, err := c.entry("controlplane-"+hash, func(dir string) error {
		log.Info("building etcd and the programs of Kubernetes; this takes minutes", "into", c.dir)
		_, err := run(ctx, module, kubernetesEnv(), "go", "run", "./up", "--programs", dir)
		return err
	})
	return ControlPlane{module, dir}, err
}

// BuildUp builds program up as file.
func (p ControlPlane) BuildUp(ctx context.Context, file string) error {
	_, err := run(ctx, p.Module, kubernetesEnv(), "go", "build", "-ldflags", "-s -w", "-o", file, "./up")
	return err
}

// kubernetesEnv is one for all that is built of Kubernetes: what its programs share,
// most of it, is compiled once then, and a seventh faster without what debuggers read.
func kubernetesEnv() []string {
	return append(goEnv("0"), "GOFLAGS=-buildvcs=false -gcflags=all=-dwarf=false")
}
