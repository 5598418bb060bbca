//go:build e2e

package nodesuite

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"podd/cmd/podd/e2e/junit"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
	"podd/runtime/runtimetest/stack/tools"
)

// baseConfig is the configuration of the kubelet: the suite's own default, but swap is permitted.
// thisHost.config is added to it, and the suite completes it.
//
//go:embed base.yaml
var baseConfig string

// suiteFlags contains the additional flags of the suite.
var suiteFlags = strings.Fields(os.Getenv("PODD_NODE_SUITE_FLAGS"))

// privateRegistry is the registry that the suite runs in a pod. It requires a password.
const privateRegistry = "localhost:5000"

// runtimeConfig is the configuration of OOM scores and of the runtime handlers, one of which only the
// specs of RuntimeClasses use. %[1]q is the path from findContainerProgram. %[2]t is whether the suite
// runs on a virtual machine, on which systemd creates cgroups. %[3]t is the opposite, because OOM scores
// may be lowered only there.
const runtimeConfig = `version = 3
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = %[3]t
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = %[1]q
SystemdCgroup = %[2]t
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.test-handler]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.test-handler.options]
BinaryName = %[1]q
SystemdCgroup = %[2]t
`

// TestNodeSuite runs the specs that match $PODD_NODE_SUITE, by default all.
func TestNodeSuite(t *testing.T) {
	suite, err := tools.EnsureNodeSuite(t.Context(), slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		t.Fatal(err)
	}
	skips, err := parseSkips(skipText, suiteFlags, thisHost.isMachine)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.Ensure(t.Context(), tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	containerProgram, err := findContainerProgram(set.Runc)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(runtimeConfig, containerProgram, thisHost.isMachine, !thisHost.isMachine)
	runtime := stack.ForTest(t, stack.Options{Dir: filepath.Join(thisHost.disk, "c"), Config: config})
	for _, dir := range []string{"", "stack", "stack/root", "stack/run"} { // for user namespaces, whose root enters these directories
		if err := os.Chmod(filepath.Join(runtime.Dir, dir), 0o711); err != nil {
			t.Fatal(err)
		}
	}
	supervise(t, runtime)
	images, err := registry.Start(registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer images.Close()
	if err := errors.Join(runtime.MirrorRegistries(images.Host(), privateRegistry), pushImages(images, suite), addPlaceholderDigest(t.Context(), runtime)); err != nil {
		t.Fatal(err)
	}
	// The specs of RuntimeClasses search this file for the handler, although the runtime does not read
	// the file.
	const usualConfig = "/etc/containerd/config.toml"
	if err := errors.Join(os.MkdirAll(filepath.Dir(usualConfig), 0o755), os.WriteFile(usualConfig, []byte(config), 0o644)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(thisHost.disk, "suite")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Symlink(suite.Program, filepath.Join(dir, "e2e_node.test")), os.Symlink(filepath.Join(thisHost.programs, "kubelet"), filepath.Join(dir, "kubelet")),
		os.WriteFile(filepath.Join(dir, "base.yaml"), []byte(baseConfig+thisHost.config), 0o600)); err != nil {
		t.Fatal(err)
	}
	// The page cache of the build would count as used memory; see the package comment.
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	focus := cmp.Or(os.Getenv("PODD_NODE_SUITE"), ".")
	failed := run(t.Context(), suite, runtime, dir, focus, skips)
	report, err := junit.Read(filepath.Join(dir, "reports", "junit.xml"))
	logReport(t, report, regexp.MustCompile(focus), skips)
	for _, failure := range report.Failures {
		t.Error(failure)
	}
	if failed != nil && len(report.Failures) == 0 || err != nil || len(report.Passed) == 0 {
		log, _ := os.ReadFile(filepath.Join(dir, "output"))
		t.Errorf("running the suite: got exit error %v, report error %v and %d passed specs, want no error and at least one spec; output:\n%s", failed, err, len(report.Passed), log[max(0, len(log)-8000):])
	}
	keepFiles(t, dir)
}

// run runs the specs, with the flags of the suite in $PODD_NODE_SUITE_FLAGS. The results are in the files
// reports/junit.xml and output in dir.
func run(ctx context.Context, suite tools.NodeSuite, runtime *stack.Stack, dir, focus string, skips []skip) error {
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return err
	}
	defer output.Close()
	args := []string{"--procs", strconv.Itoa(thisHost.processes), "--timeout", "9h", "--no-color", "--silence-skips", "--junit-report", "junit.xml", "--output-dir", "reports",
		"--focus", focus, "--skip", expression(skips), "e2e_node.test", "--",
		"--container-runtime-endpoint", runtime.Endpoint(), "--container-runtime-pid-file", "",
		"--kubelet-config-file", filepath.Join(dir, "base.yaml"), "--kubelet-flags", "--cluster-domain=cluster.local", "--dns-domain", "cluster.local",
		"--prepull-images=false", "--report-dir", filepath.Join(dir, "reports")}
	for _, flag := range thisHost.flags {
		args = append(args, "--kubelet-flags", flag)
	}
	cmd := exec.CommandContext(ctx, suite.Ginkgo, append(args, suiteFlags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, output, output
	cmd.Env = append(os.Environ(), "PATH="+thisHost.programs+":"+os.Getenv("PATH"))
	return cmd.Run()
}

// logReport logs the number of specs by result, and the reasons of the skipped ones.
func logReport(t *testing.T, report junit.Report, focus *regexp.Regexp, skips []skip) {
	reasons := map[string]int{}
	for _, reason := range report.Skipped {
		reasons["the suite: "+reason]++
	}
	for _, name := range report.Excluded {
		if focus.MatchString(name) {
			reasons["skip.txt: "+reasonFor(name, skips)]++
		}
	}
	skipped := 0
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		t.Logf("skipped %d: %s", reasons[reason], reason)
		skipped += reasons[reason]
	}
	t.Logf("%d passed, %d failed, %d skipped", len(report.Passed), len(report.Failures), skipped)
}

// keepFiles copies the logs of the suite and of podd to $PODD_NODE_SUITE_LOGS if it is set, because
// the private host and its files are removed.
func keepFiles(t *testing.T, dir string) {
	to := os.Getenv("PODD_NODE_SUITE_LOGS")
	if to == "" {
		return
	}
	if out, err := exec.Command("cp", "-r", filepath.Join(dir, "output"), filepath.Join(dir, "reports"), to).CombinedOutput(); err != nil {
		t.Errorf("copying the logs: %v: %s", err, strings.TrimSpace(string(out)))
	}
}
