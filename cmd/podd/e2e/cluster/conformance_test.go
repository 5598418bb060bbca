//go:build e2e

package cluster

import (
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/e2e/junit"
	"podd/runtime/runtimetest/stack/tools"
)

// skipped contains regular expressions for the names of the tests that do not run. Most of these
// tests cannot pass on this host with any node agent.
var skipped = []string{
	`\[Serial\]`, `\[Slow\]`, `\[Disruptive\]`, // affect other tests or take long
	`should enable privileged commands`,                            // creates a network device that not every kernel supports
	`when running a container with a new image`,                    // pulls from public registries
	`node-pod communication: udp`,                                  // requires a netcat with UDP instead of the shell's own
	`(Secrets|ConfigMap) should be consumable via the environment`, // requires a shell that keeps variables with unusual names
}

// quickTests contains the names of thirty quick tests, one per line. They cover each area of
// the suite with one or two tests.
//
//go:embed conformance.txt
var quickTests string

// TestNodeConformance runs node conformance tests of Kubernetes: the quick tests or, if
// $PODD_CONFORMANCE is set, all tests that match this regular expression.
func TestNodeConformance(t *testing.T) {
	suite, err := tools.EnsureConformance(t.Context(), slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := runtimeStack.LoadImages(t.Context(), suite.Images, suite.ImageNames...); err != nil {
		t.Fatal(err)
	}
	plane.startControllers(t)
	a, _ := newServingAgent(t, "conformance", "--cluster-dns", "10.96.0.10", "--cluster-domain", "cluster.local")
	a.start()
	a.eventually("the node is ready and has no taints", func() error {
		n, err := plane.node(a.node)
		if err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue && len(n.Spec.Taints) == 0 {
				return nil
			}
		}
		return fmt.Errorf("got conditions %v, taints %v, want Ready and no taints", n.Status.Conditions, n.Spec.Taints)
	})
	focus, want := selection()
	reports := t.TempDir()
	run := exec.CommandContext(t.Context(), suite.Ginkgo, "--procs", "6", "--timeout", "40m", "--no-color", "--silence-skips", "--junit-report", "junit.xml", "--output-dir", reports,
		"--focus", focus, "--skip", strings.Join(skipped, "|"), suite.Suite, "--",
		"--kubeconfig", filepath.Join(plane.dir, "admin.kubeconfig"), "--provider", "skeleton", "--num-nodes", "1", "--disable-log-dump")
	output, err := os.Create(filepath.Join(reports, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	run.Stdout, run.Stderr = output, output
	failed := run.Run()
	// The suite does not wait for its last pods, and some of them have a grace period of 500 s.
	if out, err := a.verb("shutdown", "--grace=4s"); err != nil {
		t.Errorf("podd shutdown: %v: %s", err, out)
	}
	report, err := junit.Read(filepath.Join(reports, "junit.xml"))
	ran := len(report.Passed) + len(report.Failures)
	t.Logf("%d of %d tests passed", len(report.Passed), ran)
	for _, failure := range report.Failures {
		t.Error(failure)
	}
	if failed != nil && len(report.Failures) == 0 || err != nil || ran < want {
		log, _ := os.ReadFile(output.Name())
		t.Errorf("running the suite: got exit error %v, report error %v and %d tests, want no error and %d tests or more; output:\n%s", failed, err, ran, want, log[max(0, len(log)-8000):])
	}
}

// selection returns a regular expression for the tests to run, and the minimum number of tests
// that must match it.
func selection() (focus string, minimum int) {
	if given := os.Getenv("PODD_CONFORMANCE"); given != "" {
		return given, 1
	}
	names := strings.Split(strings.TrimSpace(quickTests), "\n")
	for i := range names {
		names[i] = regexp.QuoteMeta(names[i])
	}
	return "(" + strings.Join(names, "|") + ")$", len(names)
}
