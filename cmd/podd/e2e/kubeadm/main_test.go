//go:build e2e

package kubeadm

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"podd/cmd/podd/e2e/harness"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

var thisNode *node // the node in which this process runs

// poddEnv is the environment variable in which the second node gets the path of the podd that the
// first node has built, so that it does not build podd again.
const poddEnv = "PODD_KUBEADM_PODD"

func TestMain(m *testing.M) {
	if os.Getenv(nodeEnv) == "" {
		harness.Exit(runFirstNode())
	}
	harness.Exit(harness.RunInTempDir(func(dir string) (int, error) { return runOnNode(m, dir) }))
}

// runOnNode runs the tests on a node, with a runtime and the programs of Kubernetes in dir.
func runOnNode(m *testing.M, dir string) (exitCode int, err error) {
	ctx := context.Background()
	n := &node{name: os.Getenv(nodeEnv), dir: filepath.Join(dir, "node")}
	defer func() { _ = unix.Unmount(n.dir, unix.MNT_DETACH) }()
	thisNode = n
	containers := filepath.Join(dir, "c") // separate, because the stack removes all mounts below its directory
	if err := errors.Join(os.Mkdir(n.dir, 0o700), os.Mkdir(containers, 0o700)); err != nil {
		return 1, err
	}
	made, err := tools.EnsureControlPlane(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return 1, err
	}
	n.programs = made.Programs
	podd := os.Getenv(poddEnv)
	if podd == "" {
		podd = filepath.Join(dir, "podd")
		if err := errors.Join(harness.BuildPodd(ctx, podd), os.Setenv(poddEnv, podd)); err != nil {
			return 1, err
		}
	}
	if err := n.prepare(podd); err != nil {
		return 1, err
	}
	if n.runtime, err = stack.Start(ctx, stack.Options{Dir: containers}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, n.runtime.Destroy(ctx)) }()
	if err := errors.Join(enableForwarding(), n.createCgroups()); err != nil {
		return 1, err
	}
	if n.name == first { // the first node runs the control plane
		if err := n.loadImages(ctx); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}
