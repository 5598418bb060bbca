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
	Programs     string
	FeatureGates string // the value of --feature-gates of the API server; "" means the defaults
}

// oldestFeatureGates enables two features that are disabled by default in 1.34. The conformance tests of
// the current version test them.
const oldestFeatureGates = "HostnameOverride=true,ContainerRestartRules=true"

// EnsureControlPlane returns the programs of the current version of Kubernetes. If they do not exist,
// EnsureControlPlane builds them, which takes minutes.
func EnsureControlPlane(ctx context.Context, log *slog.Logger) (ControlPlane, error) {
	return ensureControlPlane(ctx, log, "controlplane", nil)
}

// EnsureOldestControlPlane returns the programs of the oldest version of Kubernetes with which podd is
// tested as a node. If they do not exist, EnsureOldestControlPlane builds them, which takes minutes.
func EnsureOldestControlPlane(ctx context.Context, log *slog.Logger) (ControlPlane, error) {
	p, err := ensureControlPlane(ctx, log, "oldest", []string{"oldest"}, "--oldest")
	p.FeatureGates = oldestFeatureGates
	return p, err
}

// ensureControlPlane returns the programs that "up" builds with these flags, in the cache entry whose
// name begins with entry. submodules contains the directories, relative to testdata/controlplane, of the
// other modules from which "up" builds programs.
func ensureControlPlane(ctx context.Context, log *slog.Logger, entry string, submodules []string, flags ...string) (ControlPlane, error) {
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
	hash, err := moduleHash(ctx, module, submodules...)
	if err != nil {
		return ControlPlane{}, err
	}
	dir, err := c.ensureEntry(entry+"-"+hash, func(dir string) error {
		log.Info("building etcd and the programs of Kubernetes; this takes minutes", "into", c.dir)
		_, err := run(ctx, module, goEnv("0"), "go", append([]string{"run", "./up", "--programs", dir}, flags...)...)
		return err
	})
	return ControlPlane{Module: module, Programs: dir}, err
}

// BuildUpProgram builds the program "up" of the module and writes it to file.
func (p ControlPlane) BuildUpProgram(ctx context.Context, file string) error {
	_, err := run(ctx, p.Module, goEnv("0"), "go", "build", "-ldflags", "-s -w", "-o", file, "./up")
	return err
}
