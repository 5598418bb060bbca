// Package harness contains the parts that the packages of end-to-end tests share: running the
// tests in a temporary directory, building podd, and waiting for conditions.
package harness

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"podd/cmd/internal/release"
	"podd/runtime/runtimetest/stack"
)

// PollInterval is the interval at which tests check a condition that they can only poll.
const PollInterval = 10 * time.Millisecond

// parallelTests is the default number of tests that run at the same time. The tests spend most of their
// time waiting.
const parallelTests = "6"

// Main parses the flags, runs at most parallelTests tests at the same time unless the flag -parallel is
// given, calls RunInTempDir(run), and then calls Exit with its results. If the tests run on CRI-O, Main
// does this in a child process with shared mounts; see stack.ShareMounts.
func Main(run func(dir string) (exitCode int, err error)) {
	setParallelTests()
	exitCode, hasRun, err := stack.ShareMounts()
	if err == nil && !hasRun {
		exitCode, err = RunInTempDir(run)
	}
	Exit(exitCode, err)
}

// setParallelTests parses the flags and sets the number of parallel tests.
func setParallelTests() {
	flag.Parse()
	isGiven := false
	flag.Visit(func(f *flag.Flag) { isGiven = isGiven || f.Name == "test.parallel" })
	if !isGiven {
		if err := flag.Set("test.parallel", parallelTests); err != nil {
			panic(err) // the test binary has no such flag
		}
	}
}

// RunInTempDir calls the function run with the path of a new temporary directory, and returns the
// results of run. It then removes the directory. The path is short enough for Unix sockets in the
// directory.
func RunInTempDir(run func(dir string) (exitCode int, err error)) (exitCode int, err error) {
	dir, err := os.MkdirTemp("", "podd-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	return run(dir)
}

// Exit exits with exitCode. If err is not nil, Exit prints err and exits with 1.
func Exit(exitCode int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		exitCode = 1
	}
	os.Exit(exitCode)
}

// BuildPodd builds podd like a release and writes it to file. The working directory must be in
// the module podd.
func BuildPodd(ctx context.Context, file string) error {
	return runBuild(release.Command(ctx, "", file), file)
}

// FindOrBuildKubectl returns the path of the host's kubectl. If the host has no kubectl, it builds
// kubectl from the module testdata/controlplane and writes the program to file. controlPlaneModule
// is the directory of this module.
func FindOrBuildKubectl(ctx context.Context, controlPlaneModule, file string) (path string, err error) {
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path, nil
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "k8s.io/kubernetes/cmd/kubectl")
	build.Dir, build.Env = controlPlaneModule, append(os.Environ(), "CGO_ENABLED=0")
	return file, runBuild(build, file)
}

// runBuild runs a command that builds file.
func runBuild(build *exec.Cmd, file string) error {
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w: %s", file, err, out)
	}
	return nil
}

// MaxWait returns the maximum time that a test waits for an event. Users set this time in
// $PODD_E2E_PATIENCE on slow hosts. If the variable is not set, MaxWait returns the parameter
// usual.
func MaxWait(usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv("PODD_E2E_PATIENCE")); err == nil {
		return d
	}
	return usual
}

// Poll calls check until check returns nil or limit has passed. It returns the result of the last
// call. Between two calls it waits PollInterval, or twice as long as the call took if that is longer.
// Otherwise, expensive checks would slow down what they wait for.
func Poll(limit time.Duration, check func() error) error {
	deadline := time.Now().Add(limit)
	for {
		start := time.Now()
		err := check()
		end := time.Now()
		if err == nil || end.After(deadline) {
			return err
		}
		time.Sleep(max(PollInterval, 2*end.Sub(start)))
	}
}

// Eventually polls until check returns nil. If check still returns an error after limit, the test
// fails with the last error and with condition, which is a description of what check tests.
func Eventually(t testing.TB, limit time.Duration, condition string, check func() error) {
	t.Helper()
	if err := Poll(limit, check); err != nil {
		t.Fatalf("waited %v until %s: %v", limit, condition, err)
	}
}
