package tools

import (
	"context"
	"log/slog"
	"path/filepath"
)

// EnsureMetricsServer returns the path of the metrics-server of testdata/metrics. If it does not
// exist, EnsureMetricsServer builds it, which takes minutes.
func EnsureMetricsServer(ctx context.Context, log *slog.Logger) (string, error) {
	const program = "metrics-server"
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	c, err := openCache(log, kubernetesLock)
	if err != nil {
		return "", err
	}
	if err := c.lock(ctx); err != nil {
		return "", err
	}
	defer c.unlock()
	module := filepath.Join(root, "testdata", "metrics")
	hash, err := moduleHash(ctx, module)
	if err != nil {
		return "", err
	}
	dir, err := c.ensureEntry("metrics-"+hash, func(dir string) error {
		log.Info("building metrics-server; this takes minutes", "into", c.dir)
		_, err := run(ctx, module, goEnv("0"), "go", "build", "-ldflags", "-s -w", "-o", filepath.Join(dir, program), "sigs.k8s.io/metrics-server/cmd/metrics-server")
		return err
	})
	return filepath.Join(dir, program), err
}
