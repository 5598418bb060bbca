//go:build e2e

package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func nodeCondition(n *v1.Node, kind v1.NodeConditionType) v1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return v1.NodeCondition{}
}

// untilReady waits until the Node is Ready, and returns it.
func (a *agent) untilReady() (n *v1.Node) {
	a.t.Helper()
	a.eventually("the node is Ready", func() (err error) {
		if n, err = plane.node(a.node); err != nil {
			return err
		}
		if c := nodeCondition(n, v1.NodeReady); c.Status != v1.ConditionTrue {
			return fmt.Errorf("got condition Ready %s (message %q), want True", c.Status, c.Message)
		}
		return nil
	})
	return n
}

func (a *agent) lease() (l *coordination.Lease, err error) {
	l = &coordination.Lease{}
	return l, plane.do(http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+a.node, nil, l)
}

func TestRegisterNode(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "n1", "--node-labels=tier=edge,node.kubernetes.io/x=y", "--register-with-taints=a=b:NoSchedule", "--provider-id=x://y", "--node-ip=10.11.12.13")
	began := time.Now()
	a.start()
	n := a.untilReady()
	t.Logf("Ready %s after podd's start", time.Since(began).Round(time.Millisecond))
	if n.Labels["tier"] != "edge" || n.Labels["node.kubernetes.io/x"] != "y" || n.Labels[v1.LabelHostname] != "n1" || n.Labels[v1.LabelOSStable] != "linux" {
		t.Errorf("got labels %v, want tier=edge, node.kubernetes.io/x=y, the hostname n1 and the OS linux", n.Labels)
	}
	if !slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == "a" && t.Value == "b" }) || n.Spec.ProviderID != "x://y" {
		t.Errorf("got spec %+v, want taint a=b and provider ID x://y", n.Spec)
	}
	if s := n.Status.Addresses; len(s) != 2 || s[0].Address != "10.11.12.13" || s[1].Address != "n1" {
		t.Errorf("got Node addresses %v, want 10.11.12.13 and n1", s)
	}
	for _, r := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods, v1.ResourceEphemeralStorage} {
		if q := n.Status.Allocatable[r]; q.Sign() <= 0 {
			t.Errorf("allocatable %s: got nothing, want a positive quantity", r)
		}
	}
	if i := n.Status.NodeInfo; i.BootID == "" || i.MachineID == "" || !strings.HasPrefix(i.ContainerRuntimeVersion, runtimeStack.RuntimeName()+"://") {
		t.Errorf("got nodeInfo %+v, want boot ID, machine ID and the version of %s", i, runtimeStack.RuntimeName())
	}
	a.eventually("the Node has images and conditions", func() error {
		n, err := plane.node("n1")
		for _, k := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
			if err == nil && nodeCondition(n, k).Status == "" {
				err = fmt.Errorf("got no condition %s, want one", k)
			}
		}
		if err == nil && !slices.ContainsFunc(n.Status.Images, func(i v1.ContainerImage) bool { return slices.Contains(i.Names, "podd.test/busybox:1") }) {
			err = fmt.Errorf("got images %v, want podd.test/busybox:1 among them", n.Status.Images)
		}
		return err
	})
	var first *coordination.Lease
	a.eventually("there is a lease", func() (err error) { first, err = a.lease(); return err })
	if o := first.OwnerReferences; len(o) != 1 || o[0].UID != n.UID || *first.Spec.HolderIdentity != "n1" || *first.Spec.LeaseDurationSeconds != 40 {
		t.Errorf("got lease %+v, want one of n1 for 40 seconds, owned by the node", first)
	}
	a.eventually("the lease is renewed", func() error {
		l, err := a.lease()
		if err == nil && !l.Spec.RenewTime.After(first.Spec.RenewTime.Time) {
			err = errors.New("the lease is not renewed")
		}
		return err
	})
}

// TestRegisterNode_Existing checks that podd joins as an existing Node. It keeps the taints and labels of
// others, but as on a kubelet's new host, the Node has no devices until a device plugin or an
// administrator adds them.
func TestRegisterNode_Existing(t *testing.T) {
	t.Parallel()
	made := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2", Labels: map[string]string{"mine": "x", v1.LabelHostname: "old"}}}
	made.Spec.Taints = []v1.Taint{{Key: "kept", Effect: v1.TaintEffectNoSchedule}}
	made.Status.Capacity = v1.ResourceList{"example.com/dongle": resource.MustParse("4")}
	if err := plane.do(http.MethodPost, "/api/v1/nodes", made, nil); err != nil {
		t.Fatal(err)
	}
	n := newAgent(t, "n2", "--register-with-taints=a=b:NoSchedule").start().untilReady()
	q, exists := n.Status.Allocatable["example.com/dongle"]
	if n.Labels["mine"] != "x" || n.Labels[v1.LabelHostname] != "n2" || !exists || q.Value() != 0 {
		t.Errorf("got labels %v, allocatable %v, want the label mine=x, the hostname n2 and 0 of example.com/dongle", n.Labels, n.Status.Allocatable)
	}
	if slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == "a" }) {
		t.Errorf("got taints %v, want no taint a from the flag --register-with-taints", n.Spec.Taints)
	}
}

func TestNodeDeleted(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "n3").start()
	before := a.untilReady()
	a.pod("web")
	a.untilRunning("web")
	if err := plane.do(http.MethodDelete, "/api/v1/nodes/n3", nil, nil); err != nil {
		t.Fatal(err)
	}
	a.untilPs("node n3 was deleted from the cluster", true)
	if _, err := plane.node("n3"); !errors.Is(err, errNotFound) {
		t.Errorf("deleted Node: got error %v, want not found until podd restarts", err)
	}
	a.kill()
	a.start()
	if after := a.untilReady(); after.UID == before.UID {
		t.Errorf("after a restart of podd: got a Node with UID %s of the deleted one, want a new Node", after.UID)
	}
	a.untilRunning("web")
	a.untilPs("was deleted", false)
	a.eventually("the new Node owns the lease", func() error {
		n, nerr := plane.node("n3")
		l, err := a.lease()
		if err = errors.Join(err, nerr); err == nil && l.OwnerReferences[0].UID != n.UID {
			err = fmt.Errorf("got lease with owners %v, want the UID %s", l.OwnerReferences, n.UID)
		}
		return err
	})
}

// untilRenewed waits until the lease has been renewed after the time in the parameter since.
func (a *agent) untilRenewed(since time.Time) {
	a.t.Helper()
	a.eventually("the lease is renewed", func() error {
		l, err := a.lease()
		if err == nil && l.Spec.RenewTime.Time.Before(since) {
			err = errors.New("the lease is not renewed")
		}
		return err
	})
}

// TestAPIServerOutage checks that an outage of the API server affects no pod and is logged
// once.
func TestAPIServerOutage(t *testing.T) {
	a := newAgent(t, "n4").start()
	a.untilReady()
	a.pod("before")
	a.untilRunning("before")
	restart := plane.killAPIServer(t)
	a.untilPs("cannot be reached", true)
	a.pod("meanwhile")
	a.untilRunning("meanwhile")
	restart()
	since := time.Now()
	a.untilPs("cannot be reached", false)
	a.untilRenewed(since)
	t.Logf("the lease is renewed %s after the restart of the API server", time.Since(since).Round(time.Millisecond))
	a.untilRunning("before")
	if n := a.countInLog("cannot be reached"); n != 1 {
		t.Errorf("log: got \"cannot be reached\" %d times, want it once", n)
	}
	// podd corrects a status that another client has changed.
	patch := map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "Unknown"}}}}
	if err := plane.do(http.MethodPatch, "/api/v1/nodes/n4/status", patch, nil); err != nil {
		t.Fatal(err)
	}
	a.untilReady()
}

// TestAPIServerUnresponsive checks that pods run although the API server in the kubeconfig accepts
// connections but does not respond. podd must use a changed kubeconfig without a restart, unless the
// new content is invalid.
func TestAPIServerUnresponsive(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := newAgent(t, "n5")
	file := a.useServer(l.Addr().String())
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(plane.dir, "n5.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	a.start()
	a.pod("web")
	a.untilRunning("web")
	a.untilPs("within 10s", true)
	write(string(text)) // now podd must connect to the server in the new content
	a.untilReady()
	a.untilPs("no response from the cluster", false)

	write("clusters: [") // invalid YAML, as after an incomplete write
	a.untilPs("the previous kubeconfig stays in use", true)
	a.untilRenewed(time.Now())
	write(string(text))
	a.untilPs("the previous kubeconfig stays in use", false)
}

func TestKubeconfigOfAnotherUser(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "n6")
	a.flags = append(a.flags, "--kubeconfig", filepath.Join(plane.dir, "other.kubeconfig"))
	a.start()
	a.pod("web")
	a.untilRunning("web")
	a.untilPs("the kubeconfig's user must be system:node:NAME", true)
	if n := a.countInLog("forbids a request"); n != 1 {
		t.Errorf("log: got \"forbids a request\" %d times, want it once", n)
	}
}

// TestIdleNode_Requests checks that an idle node sends only lease renewals and an occasional
// status update. One update is allowed, because a test that runs in parallel may pull an image.
func TestIdleNode_Requests(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "n7").start()
	a.untilReady()
	a.eventually("there is a lease", func() error { _, err := a.lease(); return err })
	a.eventually("the Node has images", func() error {
		n, err := plane.node("n7")
		if err == nil && len(n.Status.Images) == 0 {
			err = errors.New("got no images, want some")
		}
		return err
	})
	time.Sleep(15 * time.Second) // podd may report the next change of the status, too
	since := time.Now()
	time.Sleep(time.Minute)
	n := plane.requestCounts(t, "n7", since)
	t.Logf("requests in a minute: %v", n)
	if n["update leases"] < 4 || n["update leases"] > 7 || n["patch nodes/status"] > 1 || len(n) > 2 {
		t.Errorf("requests in a minute: got %v, want 4 to 7 lease updates and at most one status patch", n)
	}
}
