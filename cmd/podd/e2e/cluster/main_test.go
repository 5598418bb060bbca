//go:build e2e

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"podd/cmd/podd/e2e/harness"
	"podd/runtime/runtimetest/csidriver"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

var (
	runtimeStack *stack.Stack
	binary       string // podd
	plane        *controlPlane
)

func TestMain(m *testing.M) {
	csidriver.Main() // does not return in the process of a driver
	harness.Main(func(dir string) (int, error) { return run(m, dir) })
}

// ensureControlPlane returns the programs of the control plane: the oldest with which podd is tested if
// $PODD_PLANE is "oldest", otherwise the current ones.
func ensureControlPlane(ctx context.Context, log *slog.Logger) (tools.ControlPlane, error) {
	switch version := os.Getenv("PODD_PLANE"); version {
	case "":
		return tools.EnsureControlPlane(ctx, log)
	case "oldest":
		return tools.EnsureOldestControlPlane(ctx, log)
	default:
		return tools.ControlPlane{}, fmt.Errorf("$PODD_PLANE is %q; set it to oldest, or unset it", version)
	}
}

// run starts the shared runtime and control plane in dir, and runs the tests.
func run(m *testing.M, dir string) (exitCode int, err error) {
	ctx := context.Background()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	made, err := ensureControlPlane(ctx, log)
	if err != nil {
		return 1, err
	}
	if runtimeStack, err = stack.Start(ctx, stack.Options{Dir: dir}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, runtimeStack.Destroy(ctx)) }()
	binary = filepath.Join(dir, "podd")
	if err := harness.BuildPodd(ctx, binary); err != nil {
		return 1, err
	}
	if plane, err = startPlane(ctx, made, filepath.Join(dir, "plane")); err != nil {
		return 1, err
	}
	defer plane.Stop()
	return m.Run(), nil
}
