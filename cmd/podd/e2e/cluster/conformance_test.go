//go:build e2e

package cluster

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack/tools"
)

// elsewhere are tests that are not for a machine like this, whatever its agent.
var elsewhere = []string{
	`\[Serial\]`, `\[Slow\]`, `\[Disruptive\]`, // they disturb others, or take long
	`should enable privileged commands`,                            // makes a network device of a kind that not every kernel has
	`when running a container with a new image`,                    // pulls from registries of the world
	`node-pod communication: udp`,                                  // wants a netcat that knows datagrams before the shell's own
	`(Secrets|ConfigMap) should be consumable via the environment`, // wants a shell that keeps variables that are none of its own
}

// some are the names of thirty quick tests, a line each: of every thing that the suite
// asks of an agent one or two.
//
//go:embed conformance.txt
var some string

// TestNodeConformance runs Kubernetes' own tests of an agent of a node: some, or all
// that the regular expression in $PODD_CONFORMANCE chooses.
func TestNodeConformance(t *testing.T) {
	suite, err := tools.EnsureConformance(t.Context(), slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := runtimeStack.Load(t.Context(), suite.Images, suite.ImageNames...); err != nil {
		t.Fatal(err)
	}
	plane.control(t)
	a, _ := serving(t, "conformance", "--cluster-dns", "10.96.0.10", "--cluster-domain", "cluster.local")
	a.start()
	a.eventually("the node is ready and without taints", func() error {
		n, err := plane.node(a.node)
		if err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue && len(n.Spec.Taints) == 0 {
				return nil
			}
		}
		return fmt.Errorf("conditions %v, taints %v", n.Status.Conditions, n.Spec.Taints)
	})
	focus, want := chosen()
	reports := t.TempDir()
	run := exec.CommandContext(t.Context(), suite.Ginkgo, "--procs", "6", "--timeout", "40m", "--no-color", "--silence-skips", "--junit-report", "junit.xml", "--output-dir", reports,
		"--focus", focus, "--skip", strings.Join(elsewhere, "|"), suite.Suite, "--",
		"--kubeconfig", filepath.Join(plane.dir, "admin.kubeconfig"), "--provider", "skeleton", "--num-nodes", "1", "--disable-log-dump")
	output, err := os.Create(filepath.Join(reports, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	run.Stdout, run.Stderr = output, output
	failed := run.Run()
	// The suite does not wait for its last pods, and some have a grace period of 500 s.
	if out, err := a.verb("shutdown", "--grace=4s"); err != nil {
		t.Errorf("podd shutdown: %v: %s", err, out)
	}
	passed, faults, err := read(filepath.Join(reports, "junit.xml"))
	t.Logf("%d of %d tests pass", passed, passed+len(faults))
	for _, fault := range faults {
		t.Error(fault)
	}
	if failed != nil && len(faults) == 0 || err != nil || passed+len(faults) < want {
		said, _ := os.ReadFile(output.Name())
		t.Errorf("running the suite: %v, %v, %d tests ran, want %d or more:\n%s", failed, err, passed+len(faults), want, said[max(0, len(said)-8000):])
	}
}

// chosen is a regular expression of tests, and how many there are at least.
func chosen() (focus string, least int) {
	if chosen := os.Getenv("PODD_CONFORMANCE"); chosen != "" {
		return chosen, 1
	}
	names := strings.Split(strings.TrimSpace(some), "\n")
	for i := range names {
		names[i] = regexp.QuoteMeta(names[i])
	}
	return "(" + strings.Join(names, "|") + ")$", len(names)
}

// read is what a report of ginkgo says: how many tests passed, and what is wrong
// with the others.
func read(report string) (passed int, faults []string, err error) {
	text, err := os.ReadFile(report)
	if err != nil {
		return 0, nil, err
	}
	var all struct {
		Suites []struct {
			Cases []struct {
				Name    string `xml:"name,attr"`
				Status  string `xml:"status,attr"`
				Failure string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &all); err != nil {
		return 0, nil, fmt.Errorf("reading %s: %w", report, err)
	}
	for _, s := range all.Suites {
		for _, c := range s.Cases {
			switch {
			case c.Status == "skipped" || !strings.HasPrefix(c.Name, "[It]"):
			case c.Status == "passed":
				passed++
			default:
				faults = append(faults, fmt.Sprintf("%s: %s: %s", c.Name, c.Status, c.Failure))
			}
		}
	}
	return passed, faults, nil
}
