//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// TestDynamicConfig changes the configuration file while a pod runs. podd must use a valid configuration
// without a restart, and keep its configuration if the new one is invalid. podd must return to the last
// known good configuration if a port is in use, if the runtime is unreachable in two trials, and if podd is
// killed three times. The pod must keep running in the same container, also if podd starts with an invalid file.
func TestDynamicConfig(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	endpoint := d.endpoint
	d.endpoint = "" // set in the file
	path := filepath.Join(d.dir, "config.yaml")
	d.args = append(d.args, "--config", path, "--dynamic-config-dir", filepath.Join(d.dir, "dynamic"), "--dynamic-config-trial", "20s")
	write := func(endpoint, fields string) {
		t.Helper()
		text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncontainerRuntimeEndpoint: " + endpoint + "\n" + fields + "\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(endpoint, "maxPods: 40")
	d.start()
	pid := d.proc.pid()
	d.apply(d.pod("web", shell("main", serve("web"))))
	id := d.untilApplied("web").Pod.Status.ContainerStatuses[0].ContainerID
	d.untilConfig("LastKnownGood", "40")

	write(endpoint, "maxPods: many")
	d.untilProblem("config.yaml:4:1: error: maxPods: must be an integer", "podd uses the last known good configuration")
	write(endpoint, "maxPods: 41")
	d.untilConfig("OnTrial", "41")
	d.untilNoProblems()
	d.untilConfig("LastKnownGood", "41")

	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	write(endpoint, fmt.Sprintf("maxPods: 42\naddress: 127.0.0.1\nreadOnlyPort: %d", used.Addr().(*net.TCPAddr).Port))
	d.untilProblem("was rejected: podd failed: ", "address already in use")
	d.untilConfig("ConfigNotUsed", "41")
	write("unix:///nonexistent/containerd.sock", "maxPods: 43")
	d.untilConfig("OnTrial", "43")
	d.untilProblem("the trial of the configuration in the files ended, because the container runtime was unreachable for 10s, and was reachable before")
	d.untilConfig("ConfigNotUsed", "41")
	d.untilProblem("was rejected: the container runtime was unreachable for 10s, and was reachable before, in 2 trials")
	d.untilConfig("ConfigNotUsed", "41")
	if !d.proc.running() || d.proc.pid() != pid {
		t.Errorf("process of podd: got PID %d, want %d, still running", d.proc.pid(), pid)
	}
	d.untilEvent("", 1, "KubeletConfigRejected")

	write(endpoint, "maxPods: 44")
	d.untilConfig("OnTrial", "44")
	for range 3 {
		d.crash()
	}
	d.untilProblem("was rejected: podd crashed 3 times with this configuration")
	d.untilConfig("ConfigNotUsed", "41")

	write(endpoint, "maxPods: many")
	d.untilProblem("maxPods: must be an integer")
	d.crash()
	d.untilProblem("maxPods: must be an integer", "podd uses the last known good configuration")
	d.untilConfig("ConfigNotUsed", "41")
	write(endpoint, "maxPods: 41")
	d.untilNoProblems()
	d.untilPod("still runs in the same container", "web", func(p *server.PodView) error {
		if got := p.Pod.Status.ContainerStatuses[0]; got.ContainerID != id || got.State.Running == nil || got.RestartCount != 0 {
			return fmt.Errorf("got container status %+v, want container %s running, never restarted", got, id)
		}
		return nil
	})
}

// untilConfig waits until the condition of the configuration has a reason and the Node has a capacity of
// pods.
func (d *daemon) untilConfig(reason, pods string) {
	d.t.Helper()
	d.eventually(fmt.Sprintf("the configuration is %s, with maxPods %s", reason, pods), func() error {
		var node v1.Node
		stdout, stderr, code := d.outcome(nil, "get", "node", d.host, "-o", "json")
		if code != 0 {
			return fmt.Errorf("podd get node: exit code %d: %s", code, stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &node); err != nil {
			return err
		}
		got := ""
		for _, c := range node.Status.Conditions {
			if c.Type == "KubeletConfigOk" {
				got = c.Reason
			}
		}
		if capacity := node.Status.Capacity.Pods().String(); got != reason || capacity != pods {
			return fmt.Errorf("got reason %q, capacity %s; want %q, %s", got, capacity, reason, pods)
		}
		return nil
	})
}
