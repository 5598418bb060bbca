//go:build e2e

package kubeadm

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

const initConfig = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: abcdef.0123456789abcdef}]
localAPIEndpoint: {advertiseAddress: ADDRESS}
nodeRegistration: {criSocket: SOCKET}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ` + manifest.KubernetesVersion + `
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupRoot: CGROUP
failCgroupV1: false
`

// ignoredChecks are the preflight checks that fail without systemd or on a small host.
const ignoredChecks = "--ignore-preflight-errors=NumCPU,Mem,SystemVerification"

// TestInit sets up one control plane with podd as the agent and one with a kubelet, to compare them.
func TestInit(t *testing.T) {
	for _, name := range []string{"podd", "kubelet"} {
		t.Run(name, func(t *testing.T) {
			a, c := thisNode.init(t, name)
			n, err := c.node(thisNode.name)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := n.Labels["node-role.kubernetes.io/control-plane"]; !ok || len(n.Spec.Taints) == 0 {
				t.Errorf("Node: got labels %v, taints %v, want those that kubeadm sets on a node of the control plane", n.Labels, n.Spec.Taints)
			}
			if got := n.Status.NodeInfo.KubeletVersion; got != manifest.KubernetesVersion {
				t.Errorf("got kubeletVersion %q, want %s", got, manifest.KubernetesVersion)
			}
			// The API server uses the client certificate that kubeadm has issued. The agent asks the
			// API server whether this client is authorized.
			eventually(t, "the API server reaches the agent", func() error {
				return c.get("/api/v1/nodes/"+thisNode.name+"/proxy/healthz", nil)
			})
			for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
				c.untilMirrored(t, component+"-"+thisNode.name)
			}
			thisNode.restartAgent(t, a, c)
		})
	}
}

// init makes the node a control plane. Its agent, podd or a kubelet, starts before there is an
// API server.
func (n *node) init(t *testing.T, agent string) (*agent, *client) {
	t.Helper()
	t.Cleanup(func() { n.reset(t) })
	config := "--config=" + n.config(t, initConfig)
	for _, phase := range []string{"certs all", "kubeconfig all", "etcd local", "control-plane all", "kubelet-start"} {
		if phase == "certs all" {
			n.kubeadm(t, "init", "phase", "preflight", config, ignoredChecks)
		}
		n.kubeadm(t, append(append([]string{"init", "phase"}, strings.Fields(phase)...), config)...)
	}
	a := n.start(t, agent)
	c := newClient(t, "/etc/kubernetes/super-admin.conf")
	eventually(t, "the API server is ready", func() error {
		if err := a.exited(); err != nil {
			t.Fatal(err)
		}
		return c.get("/readyz", nil)
	})
	served := time.Since(a.began)
	c.untilReady(t, n.name, a.exited)
	t.Logf("%s: API server ready after %.1f s, node Ready after %.1f s", agent, served.Seconds(), time.Since(a.began).Seconds())
	n.kubeadm(t, "init", "phase", "wait-control-plane")
	for _, phase := range []string{"upload-config all", "mark-control-plane", "bootstrap-token", "kubelet-finalize all"} {
		n.kubeadm(t, append(append([]string{"init", "phase"}, strings.Fields(phase)...), config)...)
	}
	return a, c
}

// restartAgent kills the agent and starts it again. The containers of the control plane must
// keep running.
func (n *node) restartAgent(t *testing.T, a *agent, c *client) {
	t.Helper()
	before := n.containers(t)
	if len(before) != 4 {
		t.Errorf("before the restart of the agent: got running containers %v, want 4", before)
	}
	a.kill()
	since := time.Now()
	n.start(t, a.name)
	eventually(t, "the new agent is healthy and renews its lease", func() error {
		l := &coordination.Lease{}
		err := c.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+n.name, l)
		if err == nil && l.Spec.RenewTime.Time.Before(since) {
			err = errors.New("the agent has not renewed the lease since its restart")
		}
		return errors.Join(err, checkHealth())
	})
	if after := n.containers(t); !maps.Equal(after, before) {
		t.Errorf("after the restart of the agent: got running containers %v, want %v", after, before)
	}
}

// checkHealth sends the health check with which kubeadm waits for the kubelet. It returns an error
// unless the check succeeds.
func checkHealth() error {
	r, err := http.Get("http://127.0.0.1:10248/healthz")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return errors.New(r.Status)
	}
	return nil
}

// untilMirrored waits until a running static pod has a mirror pod, with the hash that kubeadm
// upgrade reads.
func (c *client) untilMirrored(t *testing.T, name string) {
	t.Helper()
	eventually(t, "there is a mirror pod "+name, func() error {
		p := &v1.Pod{}
		if err := c.get("/api/v1/namespaces/kube-system/pods/"+name, p); err != nil {
			return err
		}
		hash := p.Annotations["kubernetes.io/config.hash"]
		if hash == "" || p.Annotations[v1.MirrorPodAnnotationKey] != hash || p.Status.Phase != v1.PodRunning {
			return fmt.Errorf("got phase %s and annotations %v, want phase Running and equal hashes in the two annotations", p.Status.Phase, p.Annotations)
		}
		return nil
	})
}

func (c *client) node(name string) (*v1.Node, error) {
	n := &v1.Node{}
	return n, c.get("/api/v1/nodes/"+name, n)
}

// untilReady waits until a node is Ready, and returns it. The test fails if exited returns an error
// before that.
func (c *client) untilReady(t *testing.T, name string, exited func() error) (n *v1.Node) {
	t.Helper()
	eventually(t, name+" is Ready", func() (err error) {
		if err := exited(); err != nil {
			t.Fatal(err)
		}
		if n, err = c.node(name); err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("got conditions %v, want Ready", n.Status.Conditions)
	})
	return n
}
