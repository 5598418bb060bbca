//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"podd/cmd/podd/e2e/harness"
	"podd/runtime/runtimetest/csidriver"
	"podd/runtime/runtimetest/stack"
)

var (
	// shared is the stack of all tests that do not stop or change their stack.
	shared *stack.Stack
	// binary is the podd under test.
	binary string
)

func TestMain(m *testing.M) {
	csidriver.Main() // does not return in the process of a driver
	if os.Getenv(withoutInotifyEnv) != "" {
		fmt.Fprintln(os.Stderr, execWithoutInotify(os.Args[1:]))
		os.Exit(1)
	}
	harness.Main(func(dir string) (int, error) { return run(m, dir) })
}

// run starts the shared stack in dir, runs the tests, and checks that they have left nothing on
// the stack.
func run(m *testing.M, dir string) (exitCode int, err error) {
	ctx := context.Background()
	if shared, err = stack.Start(ctx, stack.Options{Dir: dir}); err != nil {
		return 1, err
	}
	defer func() {
		if destroyed := shared.Destroy(ctx); destroyed != nil && err == nil {
			err = destroyed
		}
	}()
	if binary, err = givenOrBuiltPodd(ctx, dir); err != nil {
		return 1, err
	}
	exitCode = m.Run()
	if exitCode == 0 {
		err = errors.Join(removeClasses(shared.CgroupParent()), checkNoLeftovers(ctx, shared))
	}
	return exitCode, err
}

// givenOrBuiltPodd returns the path of podd: $PODD_E2E_BINARY, or a file in dir that it builds.
func givenOrBuiltPodd(ctx context.Context, dir string) (string, error) {
	if given := os.Getenv("PODD_E2E_BINARY"); given != "" {
		return filepath.Abs(given)
	}
	file := filepath.Join(dir, "podd")
	return file, harness.BuildPodd(ctx, file)
}

// checkNoLeftovers returns an error if anything of a pod is left on the stack. If podd is killed during
// a call, the runtime may no longer list a pod. After a restart of the runtime, it removes such pods, or
// lists them so that they can be removed.
func checkNoLeftovers(ctx context.Context, s *stack.Stack) error {
	left, err := untilNoLeftovers(ctx, s, patience/2)
	if err != nil || left == (stack.Leftovers{}) {
		return err
	}
	if left.Sandboxes != 0 || left.Containers != 0 {
		return fmt.Errorf("got leftovers %s, want none", left)
	}
	fmt.Fprintf(os.Stderr, "%s does not list the leftovers %s; restarting it\n", s.Program(), left)
	if err := errors.Join(s.Kill(ctx), s.Restart(ctx), s.RemovePods(ctx)); err != nil {
		return err
	}
	left, err = untilNoLeftovers(ctx, s, patience/2)
	// Shims are ignored: a shim whose sandbox is in no list is a leak of containerd. Such a shim has no
	// other processes or resources, and nothing identifies its pod.
	left.Shims = 0
	if !s.RepeatsNetworkRemoval() {
		left.Rules, left.Addresses = 0, 0
	}
	if err == nil && left != (stack.Leftovers{}) {
		err = fmt.Errorf("got leftovers %s, want none", left)
	}
	return err
}

// untilNoLeftovers waits until there are no leftovers, at most for limit. It returns the
// leftovers at the end.
func untilNoLeftovers(ctx context.Context, s *stack.Stack, limit time.Duration) (left stack.Leftovers, err error) {
	_ = harness.Poll(limit, func() error {
		left, err = s.Leftovers(ctx)
		if err == nil && left != (stack.Leftovers{}) {
			return fmt.Errorf("got leftovers %s, want none", left)
		}
		return nil
	})
	return left, err
}
