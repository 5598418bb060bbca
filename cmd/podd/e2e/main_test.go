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
	// shared is the stack of the tests that do not stop or change it.
	shared *stack.Stack
	// binary is the podd under test.
	binary string
)

// sideBySide is how many tests run at once: most of their time is waiting.
const sideBySide = "6"

func TestMain(m *testing.M) {
	if os.Getenv(withoutInotifyEnv) != "" {
		fmt.Fprintln(os.Stderr, execWithoutInotify(os.Args[1:]))
		os.Exit(1)
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", sideBySide); err != nil {
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

// run brings up what all tests share, and afterwards sees that they left
// nothing in it.
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

// build makes podd as a release has it.
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

// wantNothing waits until a stack has no trace of any pod. What the runtime has
// lost track of, as it can when podd is killed in the middle of a call, it
// finds when it is started again: it removes it, or lists it once more, and a
// podd that runs then removes it.
func wantNothing(ctx context.Context, s *stack.Stack) error {
	left, err := leftIn(ctx, s, patience/2)
	if err != nil || left == (stack.Leftovers{}) {
		return err
	}
	if left.Sandboxes != 0 || left.Containers != 0 {
		return fmt.Errorf("the tests left over: %s", left)
	}
	fmt.Fprintf(os.Stderr, "%s has lost track of %s; it is started again\n", s.Program(), left)
	if err := errors.Join(s.Kill(ctx), s.Restart(ctx), s.RemovePods(ctx)); err != nil {
		return err
	}
	left, err = leftIn(ctx, s, patience/2)
	// A shim whose sandbox no list has is containerd's own affair: it has
	// neither processes nor anything else, and nobody can tell whose it was.
	left.Shims = 0
	if !s.RepeatsNetworkRemoval() {
		left.Rules, left.Addresses = 0, 0
	}
	if err == nil && left != (stack.Leftovers{}) {
		err = fmt.Errorf("the tests left over: %s", left)
	}
	return err
}

// leftIn waits for nothing to be left, and returns what is at the last.
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
