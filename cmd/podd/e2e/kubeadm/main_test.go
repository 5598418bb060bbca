//go:build e2e

package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

var machine *node // this one

// poddEnv has the program that the first node built, for the second, which is to be
// there soon.
const poddEnv = "PODD_KUBEADM_PODD"

func TestMain(m *testing.M) {
	run := outside
	if os.Getenv(nodeEnv) != "" {
		run = func() (int, error) { return inside(m) }
	}
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// inside runs the tests on a node, with a runtime and the programs.
func inside(m *testing.M) (code int, err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "podd-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	n := &node{name: os.Getenv(nodeEnv), dir: filepath.Join(dir, "node")}
	defer func() { _ = unix.Unmount(n.dir, unix.MNT_DETACH) }()
	machine = n
	containers := filepath.Join(dir, "c") // where the stack unmounts what it finds
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
		if err := errors.Join(build(ctx, "../../../..", podd), os.Setenv(poddEnv, podd)); err != nil {
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
	if err := errors.Join(forward(), n.cgroups()); err != nil {
		return 1, err
	}
	if n.name == first { // the control plane is there
		if err := n.loadImages(ctx); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

func build(ctx context.Context, module, file string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-tags", "grpcnotrace", "-o", file, "./cmd/podd")
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w: %s", file, err, out)
	}
	return nil
}
