//go:build e2e

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

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
	code, done, err := stack.ShareMounts()
	if err == nil && !done {
		code, err = run(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "podd-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	made, err := tools.EnsureControlPlane(ctx, log)
	if err != nil {
		return 1, err
	}
	if runtimeStack, err = stack.Start(ctx, stack.Options{Dir: dir}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, runtimeStack.Destroy(ctx)) }()
	if binary, err = build(ctx, "", filepath.Join(dir, "podd"), "-tags", "grpcnotrace", "podd/cmd/podd"); err != nil {
		return 1, err
	}
	if plane, err = startPlane(ctx, made, filepath.Join(dir, "plane")); err != nil {
		return 1, err
	}
	defer plane.Stop()
	return m.Run(), nil
}

// build builds a program in a module's directory.
func build(ctx context.Context, module, file string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", file}, args...)...)
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", file, err, out)
	}
	return file, nil
}
