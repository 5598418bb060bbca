package tools

import (
	"context"
	"log/slog"
	"path/filepath"
)

// ControlPlane contains the programs of a cluster's control plane for tests, built from
// testdata/controlplane.
type ControlPlane struct {
	Module string // directory of the module, which contains the source of the program "up"
	// Programs is the directory of etcd, kube-apiserver, kube-controller-manager,
	// kube-scheduler, kubeadm and kubelet, all static.
	Programs string
}

// EnsureControlPlane returns the programs. If they do not exist, EnsureControlPlane builds them,
// which takes minutes.
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
	dir, err := c.ensureEntry("controlplane-"+hash, func(dir string) error {
		log.Info("building etcd and the programs of Kubernetes; this takes minutes", "into", c.dir)
		_, err := run(ctx, module, goEnv("0"), "go", "run", "./up", "--programs", dir)
		return err
	})
	return ControlPlane{module, dir}, err
}

// BuildUpProgram builds the program "up" of the module and writes it to file.
func (p ControlPlane) BuildUpProgram(ctx context.Context, file string) error {
	_, err := run(ctx, p.Module, goEnv("0"), "go", "build", "-ldflags", "-s -w", "-o", file, "./up")
	return err
}
