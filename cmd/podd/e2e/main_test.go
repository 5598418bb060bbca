//go:build e2e

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"podd/runtime/runtimetest/stack"
)

var (
	// shared is the stack of all tests that do not stop or change their stack.
	shared *stack.Stack
	// binary is the podd under test.
	binary string
)

// parallelTests is the number of tests that run at once. They spend most of their time waiting.
const parallelTests = "6"

func TestMain(m *testing.M) {
	if os.Getenv(withoutInotifyEnv) != "" {
		fmt.Fprintln(os.Stderr, execWithoutInotify(os.Args[1:]))
		os.Exit(1)
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", parallelTests); err != nil {
			panic(err)
		}
	}
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

// run starts the shared stack, runs the tests, and checks that they have left nothing on the
// stack.
func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "podd-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if shared, err = stack.Start(ctx, stack.Options{Dir: dir}); err != nil {
		return 1, err
	}
	defer func() {
		if destroyed := shared.Destroy(ctx); destroyed != nil && err == nil {
			err = destroyed
		}
	}()
	if binary, err = build(ctx, dir); err != nil {
		return 1, err
	}
	code = m.Run()
	if code == 0 {
		err = errors.Join(removeClasses(shared.CgroupParent()), wantNothing(ctx, shared))
	}
	return code, err
}

// build builds podd with the flags of a release.
func build(ctx context.Context, dir string) (string, error) {
	if given := os.Getenv("PODD_E2E_BINARY"); given != "" {
		return filepath.Abs(given)
	}
	file := filepath.Join(dir, "podd")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", file, "podd/cmd/podd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building podd: %w: %s", err, out)
	}
	return file, nil
}

// wantNothing returns an error unless the stack has no trace of any pod. A runtime can lose
// track of a pod if podd is killed during a call. After a restart the runtime removes such
// pods, or lists them again so that they can be removed.
func wantNothing(ctx context.Context, s *stack.Stack) error {
	left, err := leftIn(ctx, s, patience/2)
	if err != nil || left == (stack.Leftovers{}) {
		return err
	}
	if left.Sandboxes != 0 || left.Containers != 0 {
		return fmt.Errorf("got leftovers %s, want none", left)
	}
	fmt.Fprintf(os.Stderr, "%s has lost track of %s; restarting it\n", s.Program(), left)
	if err := errors.Join(s.Kill(ctx), s.Restart(ctx), s.RemovePods(ctx)); err != nil {
		return err
	}
	left, err = leftIn(ctx, s, patience/2)
	// A shim whose sandbox is in no list is a leak of containerd. It has no processes or other
	// resources, and nothing identifies the pod.
	left.Shims = 0
	if !s.RepeatsNetworkRemoval() {
		left.Rules, left.Addresses = 0, 0
	}
	if err == nil && left != (stack.Leftovers{}) {
		err = fmt.Errorf("got leftovers %s, want none", left)
	}
	return err
}

// leftIn waits until nothing is left, and returns what is left after the limit.
func leftIn(ctx context.Context, s *stack.Stack, limit time.Duration) (stack.Leftovers, error) {
	again := time.NewTicker(poll)
	defer again.Stop()
	for deadline := time.Now().Add(limit); ; <-again.C {
		left, err := s.Leftovers(ctx)
		if err != nil || left == (stack.Leftovers{}) || time.Now().After(deadline) {
			return left, err
		}
	}
}
