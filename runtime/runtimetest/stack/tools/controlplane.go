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
	// Programs is the directory of etcd, kube-apiserver, kube-controller-manager and
	// kube-scheduler, all static. EnsureControlPlane adds kubeadm and kubelet.
	Programs string
}

// EnsureControlPlane returns the programs of the current version of Kubernetes. If they do not exist,
// EnsureControlPlane builds them, which takes minutes.
func EnsureControlPlane(ctx context.Context, log *slog.Logger) (ControlPlane, error) {
	return ensureControlPlane(ctx, log, "controlplane", ".")
}

// EnsureOldestControlPlane returns the programs of the oldest version of Kubernetes with which podd is
// tested as a node. If they do not exist, EnsureOldestControlPlane builds them, which takes minutes.
func EnsureOldestControlPlane(ctx context.Context, log *slog.Logger) (ControlPlane, error) {
	return ensureControlPlane(ctx, log, "oldest", "oldest", "--oldest")
}

// ensureControlPlane returns the programs that "up" builds with these flags, in the cache entry whose
// name begins with entry. versions is the directory, relative to testdata/controlplane, of the module
// with the version of Kubernetes.
func ensureControlPlane(ctx context.Context, log *slog.Logger, entry, versions string, flags ...string) (ControlPlane, error) {
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
	hash, err := moduleHash(ctx, filepath.Join(module, versions))
	if err != nil {
		return ControlPlane{}, err
	}
	dir, err := c.ensureEntry(entry+"-"+hash, func(dir string) error {
		log.Info("building etcd and the programs of Kubernetes; this takes minutes", "into", c.dir)
		_, err := run(ctx, module, goEnv("0"), "go", append([]string{"run", "./up", "--programs", dir}, flags...)...)
		return err
	})
	return ControlPlane{module, dir}, err
}

// BuildUpProgram builds the program "up" of the module and writes it to file.
func (p ControlPlane) BuildUpProgram(ctx context.Context, file string) error {
	_, err := run(ctx, p.Module, goEnv("0"), "go", "build", "-ldflags", "-s -w", "-o", file, "./up")
	return err
}
