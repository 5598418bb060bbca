//go:build e2e

package kubeadm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"podd/manifest"
	"podd/runtime/runtimetest/child"
)

const joinConfig = `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "SERVER:6443", unsafeSkipCAVerification: true}
nodeRegistration:
  criSocket: SOCKET
  taints: [{key: example.com/new, effect: NoSchedule}]
  kubeletExtraArgs: [{name: node-labels, value: tier=edge}]
`

// TestJoin checks that a second node joins the cluster with kubeadm. The agent of this node, podd or
// a kubelet, must get a certificate with a bootstrap token, and the node must become Ready. podd is
// the agent of the first node, which runs the control plane.
func TestJoin(t *testing.T) {
	if thisNode.name == second {
		thisNode.join(t, os.Getenv(agentEnv))
		return
	}
	_, c := thisNode.init(t, "podd")
	for _, agent := range []string{"podd", "kubelet"} {
		t.Run(agent, func(t *testing.T) {
			n := c.untilReady(t, second, launch(t, agent))
			if len(n.Spec.Taints) == 0 || n.Labels["tier"] != "edge" || n.Status.NodeInfo.KubeletVersion != manifest.KubernetesVersion {
				t.Errorf("got labels %v, taints %v, nodeInfo %+v, want a taint, the label tier=edge and the kubelet version %s", n.Labels, n.Spec.Taints, n.Status.NodeInfo, manifest.KubernetesVersion)
			}
			eventually(t, "the API server reaches the agent", func() error {
				return c.get("/api/v1/nodes/"+second+"/proxy/healthz", nil)
			})
		})
		// kubeadm refuses to join with the name of a node that exists and is Ready.
		if err := c.Do(http.MethodDelete, "/api/v1/nodes/"+second, nil, nil); err != nil {
			t.Error(err)
		}
	}
}

// agentEnv is the environment variable with the name of the agent of the second node, "podd" or
// "kubelet".
const agentEnv = "PODD_KUBEADM_AGENT"

// launch starts the second node, which is stopped at the end of the test. The returned function
// returns an error if the node has exited.
func launch(t *testing.T, agent string) func() error {
	t.Helper()
	cmd := nodeCommand(second, "-test.run=^TestJoin$", "-test.v")
	cmd.Env = append(cmd.Env, agentEnv+"="+agent)
	stop, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = stop.Close()
		<-ended
		if !cmd.ProcessState.Success() {
			t.Errorf("process of the second node: got %s, want exit code 0", cmd.ProcessState)
		}
	})
	if err := connectSecondNode(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	return func() error {
		select {
		case <-ended:
			return fmt.Errorf("the second node exited: %s", cmd.ProcessState)
		default:
			return nil
		}
	}
}

// join joins the node to the cluster and runs it until stdin is closed.
func (n *node) join(t *testing.T, agent string) {
	t.Helper()
	config := "--config=" + n.config(t, joinConfig)
	n.kubeadm(t, "join", "phase", "preflight", config, ignoredChecks)
	n.kubeadm(t, "join", "phase", "kubelet-start", config)
	a := n.start(t, agent)
	// This replaces the phase kubelet-wait-bootstrap, which accepts no configuration.
	eventually(t, "the agent is healthy and has its kubeconfig", func() error {
		_, err := os.Stat("/etc/kubernetes/kubelet.conf")
		return errors.Join(err, a.exited(), checkHealth())
	})
	_, _ = io.Copy(io.Discard, os.Stdin)
}
