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
)

const initConfig = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: abcdef.0123456789abcdef}]
localAPIEndpoint: {advertiseAddress: ADDRESS}
nodeRegistration: {criSocket: SOCKET}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.34.4
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupRoot: CGROUP
`

// spared are the checks that no machine without systemd, or as small as this may be,
// passes.
const spared = "--ignore-preflight-errors=NumCPU,Mem,SystemVerification"

// TestInit: a control plane from nothing, by podd as by a kubelet.
func TestInit(t *testing.T) {
	for _, name := range []string{"podd", "kubelet"} {
		t.Run(name, func(t *testing.T) {
			a, c := machine.init(t, name)
			n, err := c.node(machine.name)
			if err != nil {
				t.Fatal(err)
			}
			if _, is := n.Labels["node-role.kubernetes.io/control-plane"]; !is || len(n.Spec.Taints) == 0 {
				t.Errorf("labels %v, taints %v", n.Labels, n.Spec.Taints)
			}
			if got := n.Status.NodeInfo.KubeletVersion; got != "v1.34.4" {
				t.Errorf("kubeletVersion %q", got)
			}
			// The API server comes in with the certificate that kubeadm gave it, and the
			// node asks it who that is.
			eventually(t, "the API server reaches the agent", func() error {
				return c.get("/api/v1/nodes/"+machine.name+"/proxy/healthz", nil)
			})
			for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
				c.mirrored(t, component+"-"+machine.name)
			}
			machine.again(t, a, c)
		})
	}
}

// init makes the node a control plane with an agent, podd or a kubelet, that is
// started when there is no API server.
func (n *node) init(t *testing.T, agent string) (*agent, *client) {
	t.Helper()
	t.Cleanup(func() { n.reset(t) })
	config := "--config=" + n.config(t, initConfig)
	for _, phase := range []string{"certs all", "kubeconfig all", "etcd local", "control-plane all", "kubelet-start"} {
		if phase == "certs all" {
			n.kubeadm(t, "init", "phase", "preflight", config, spared)
		}
		n.kubeadm(t, append(append([]string{"init", "phase"}, strings.Fields(phase)...), config)...)
	}
	a := n.start(t, agent)
	c := newClient(t, "/etc/kubernetes/super-admin.conf")
	eventually(t, "the API server is ready", func() error {
		if err := a.runs(); err != nil {
			t.Fatal(err)
		}
		return c.get("/readyz", nil)
	})
	served := time.Since(a.began)
	c.ready(t, n.name, a.runs)
	t.Logf("%s: API server ready after %.1f s, node Ready after %.1f s", agent, served.Seconds(), time.Since(a.began).Seconds())
	n.kubeadm(t, "init", "phase", "wait-control-plane")
	for _, phase := range []string{"upload-config all", "mark-control-plane", "bootstrap-token", "kubelet-finalize all"} {
		n.kubeadm(t, append(append([]string{"init", "phase"}, strings.Fields(phase)...), config)...)
	}
	return a, c
}

// again has the agent killed and started again: the control plane runs on.
func (n *node) again(t *testing.T, a *agent, c *client) {
	t.Helper()
	before := n.containers(t)
	if len(before) != 4 {
		t.Errorf("containers %v", before)
	}
	a.kill()
	since := time.Now()
	n.start(t, a.name)
	eventually(t, "the new agent is healthy, and tells the cluster", func() error {
		l := &coordination.Lease{}
		err := c.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+n.name, l)
		if err == nil && l.Spec.RenewTime.Time.Before(since) {
			err = errors.New("not yet")
		}
		return errors.Join(err, healthy())
	})
	if after := n.containers(t); !maps.Equal(after, before) {
		t.Errorf("containers %v, were %v", after, before)
	}
}

// healthy asks as kubeadm does.
func healthy() error {
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

// mirrored waits for the mirror of a static pod that runs, with the hash that
// kubeadm's upgrade looks at.
func (c *client) mirrored(t *testing.T, name string) {
	t.Helper()
	eventually(t, "the cluster has the mirror of "+name, func() error {
		p := &v1.Pod{}
		if err := c.get("/api/v1/namespaces/kube-system/pods/"+name, p); err != nil {
			return err
		}
		hash := p.Annotations["kubernetes.io/config.hash"]
		if hash == "" || p.Annotations[v1.MirrorPodAnnotationKey] != hash || p.Status.Phase != v1.PodRunning {
			return fmt.Errorf("phase %s, annotations %v", p.Status.Phase, p.Annotations)
		}
		return nil
	})
}

func (c *client) node(name string) (*v1.Node, error) {
	n := &v1.Node{}
	return n, c.get("/api/v1/nodes/"+name, n)
}

// ready waits for a node that is Ready, as long as its agent runs.
func (c *client) ready(t *testing.T, name string, runs func() error) (n *v1.Node) {
	t.Helper()
	eventually(t, name+" is Ready", func() (err error) {
		if err := runs(); err != nil {
			t.Fatal(err)
		}
		if n, err = c.node(name); err != nil {
			return err
		}
		for _, is := range n.Status.Conditions {
			if is.Type == v1.NodeReady && is.Status == v1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", n.Status.Conditions)
	})
	return n
}
