//go:build e2e

package nodesuite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"podd/cmd/podd/e2e/harness"
	"podd/cmd/podd/e2e/kubelet"
	"podd/cmd/podd/e2e/nodesuite/privatehost"
	"podd/cmd/podd/e2e/nodesuite/systemd"
	"podd/runtime/runtimetest/stack/tools"
)

func TestMain(m *testing.M) {
	systemd.Main()     // does not return in the process of a program of systemd
	privatehost.Main() // does not return in process 1 of the private host
	if thisHost.isMachine {
		harness.Exit(runOnMachine(m))
	}
	if privatehost.IsInside() {
		os.Exit(m.Run())
	}
	harness.Exit(runOnPrivateHost())
}

// otherKubelet is the path of the kubelet that runs instead of podd, or "".
var otherKubelet = os.Getenv("PODD_NODE_SUITE_KUBELET")

// runOnPrivateHost runs the tests on a private host.
func runOnPrivateHost() (exitCode int, err error) {
	if otherKubelet != "" {
		defer kubelet.SaveHost(privatehost.Root)() // a kubelet changes sysctls that have no namespace
	}
	return privatehost.Run(prepare)
}

// prepare builds all programs, because the private host has no access to a network. It writes podd (with
// the name kubelet), nmeter, perl and the programs of package systemd to the directory bin below dir.
func prepare(ctx context.Context, dir string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if _, err := tools.Ensure(ctx, tools.Options{Log: log}); err != nil {
		return err
	}
	if _, err := tools.EnsureNodeSuite(ctx, log); err != nil {
		return err
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	if err := errors.Join(writeKubelet(ctx, filepath.Join(bin, "kubelet")), tools.CopyFile("/proc/self/exe", filepath.Join(bin, "test"))); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "./nmeter", "./perl").CombinedOutput(); err != nil {
		return fmt.Errorf("building nmeter and perl: %w: %s", err, out)
	}
	for _, name := range systemd.Programs {
		if err := os.Symlink("test", filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}

// writeKubelet writes podd or, if it is set, otherKubelet to a file. It copies otherKubelet, because this
// file may not be visible on the private host.
func writeKubelet(ctx context.Context, to string) error {
	if otherKubelet == "" {
		return harness.BuildPodd(ctx, to)
	}
	return tools.CopyFile(otherKubelet, to)
}
