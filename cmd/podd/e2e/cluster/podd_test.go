//go:build e2e

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"podd/cmd/podd/e2e/harness"
)

// patience is the maximum time that a test waits for an event.
var patience = harness.MaxWait(3 * time.Minute)

// An agent is a podd that runs as a node of the cluster.
type agent struct {
	t         *testing.T
	node, dir string
	netns     string // path of podd's network namespace; "": the namespace of the test
	flags     []string
	cmd       *exec.Cmd
}

// newAgent prepares an agent, but does not start it. At the end of the test, the agent and its
// pods are stopped.
func newAgent(t *testing.T, node string, flags ...string) *agent {
	t.Helper()
	a := &agent{t: t, node: node, dir: filepath.Join(runtimeStack.Dir, "stack", "podd", node)}
	if err := os.MkdirAll(a.manifestDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	a.flags = append([]string{
		"--kubeconfig", filepath.Join(plane.dir, node+".kubeconfig"), "--hostname-override", node,
		"--root-dir", filepath.Join(a.dir, "root"), "--run-dir", a.runDir(), "--pod-logs-dir", filepath.Join(a.dir, "logs"),
		"--pod-manifest-path", a.manifestDir(), "--container-runtime-endpoint", runtimeStack.Endpoint(),
		"--cgroup-root", runtimeStack.CgroupParent() + "/" + node, "--healthz-port", "0", "--enable-server=false", "--v", "4",
		"--eviction-hard", "memory.available<1Mi", "--image-gc-high-threshold", "100", // a test host may be short of disk space
		"--make-iptables-util-chains=false", // because the agent is in the network namespace of the host
	}, flags...)
	t.Cleanup(a.end)
	return a
}

func (a *agent) manifestDir() string { return filepath.Join(a.dir, "manifests") }
func (a *agent) runDir() string      { return filepath.Join(a.dir, "run") }
func (a *agent) logFile() string     { return filepath.Join(a.dir, "podd.log") }

func (a *agent) start() *agent {
	a.t.Helper()
	log, err := os.OpenFile(a.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		a.t.Fatal(err)
	}
	defer log.Close()
	a.cmd = exec.Command(binary, a.flags...)
	if a.netns != "" { // nsenter replaces itself by podd, which then has the process ID of nsenter
		a.cmd = exec.Command("nsenter", append([]string{"--net=" + a.netns, "--", binary}, a.flags...)...)
	}
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	return a
}

func (a *agent) kill() {
	_ = a.cmd.Process.Signal(syscall.SIGKILL)
	_ = a.cmd.Wait()
	a.cmd = nil
}

// end stops the agent and its pods, and deletes the Node.
func (a *agent) end() {
	if a.cmd != nil {
		if out, err := a.verb("down"); err != nil {
			a.t.Errorf("podd down: %v: %s", err, out)
		}
		a.kill()
	}
	// Otherwise the scheduler could bind pods of later tests to this node.
	if err := plane.do(http.MethodDelete, "/api/v1/nodes/"+a.node, nil, nil); err != nil && !errors.Is(err, errNotFound) {
		a.t.Error(err)
	}
	if log, err := os.ReadFile(a.logFile()); err == nil && a.t.Failed() {
		a.t.Logf("log of podd:\n%s", log)
	}
}

// verb runs a podd command and returns its output.
func (a *agent) verb(words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience) // end runs podd down after the test's context has ended
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, words...)
	cmd.Env = append(os.Environ(), "PODD_RUN_DIR="+a.runDir())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// countInLog counts the occurrences of a text in podd's log.
func (a *agent) countInLog(text string) int {
	log, err := os.ReadFile(a.logFile())
	if err != nil {
		a.t.Fatal(err)
	}
	return strings.Count(string(log), text)
}

// pod writes the manifest of a static pod that runs the command sleep.
func (a *agent) pod(name string) {
	a.t.Helper()
	text := fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s},
spec: {hostNetwork: true, terminationGracePeriodSeconds: 0, containers: [{name: main, image: "podd.test/busybox:1", command: [sleep, "1000000"]}]}}`, name)
	a.write(name, text)
}

func (a *agent) write(name, text string) {
	a.t.Helper()
	if err := os.WriteFile(filepath.Join(a.manifestDir(), name+".yaml"), []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) remove(name string) {
	a.t.Helper()
	if err := os.Remove(filepath.Join(a.manifestDir(), name+".yaml")); err != nil {
		a.t.Fatal(err)
	}
}

// untilRunning waits until podd ps shows a pod as Running.
func (a *agent) untilRunning(name string) {
	a.t.Helper()
	a.eventually(name+" runs", func() error {
		out, err := a.verb("ps")
		for line := range strings.Lines(out) {
			if strings.Contains(line, name) && strings.Contains(line, "Running") {
				return nil
			}
		}
		return errors.Join(errors.New(out), err)
	})
}

// untilPs waits until the output of podd ps contains a text or, if want is false, does not contain
// the text.
func (a *agent) untilPs(text string, want bool) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("podd ps prints %q: %t", text, want), func() error {
		if out, _ := a.verb("ps"); strings.Contains(out, text) != want {
			return errors.New(out)
		}
		return nil
	})
}

func (a *agent) eventually(condition string, check func() error) {
	a.t.Helper()
	eventually(a.t, condition, check)
}

// eventually polls until check returns nil. After patience the test fails with the last error.
func eventually(t *testing.T, condition string, check func() error) {
	t.Helper()
	harness.Eventually(t, patience, condition, check)
}
