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

func conditionOf(n *v1.Node, kind v1.NodeConditionType) v1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return v1.NodeCondition{}
}

// ready waits for a Node that is Ready.
func (a *agent) ready() (n *v1.Node) {
	a.t.Helper()
	a.eventually("the node is Ready", func() (err error) {
		if n, err = plane.node(a.node); err != nil {
			return err
		}
		if c := conditionOf(n, v1.NodeReady); c.Status != v1.ConditionTrue {
			return fmt.Errorf("Ready is %s: %s", c.Status, c.Message)
		}
		return nil
	})
	return n
}

func (a *agent) lease() (l *coordination.Lease, err error) {
	l = &coordination.Lease{}
	return l, plane.ask(http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+a.node, nil, l)
}

func TestRegisters(t *testing.T) {
	a := newAgent(t, "n1", "--node-labels=tier=edge,node.kubernetes.io/x=y", "--register-with-taints=a=b:NoSchedule", "--provider-id=x://y", "--node-ip=10.11.12.13")
	began := time.Now()
	a.start()
	n := a.ready()
	t.Logf("Ready %s after podd's start", time.Since(began).Round(time.Millisecond))
	if n.Labels["tier"] != "edge" || n.Labels["node.kubernetes.io/x"] != "y" || n.Labels[v1.LabelHostname] != "n1" || n.Labels[v1.LabelOSStable] != "linux" {
		t.Errorf("labels: %v", n.Labels)
	}
	if !slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == "a" && t.Value == "b" }) || n.Spec.ProviderID != "x://y" {
		t.Errorf("spec: %+v", n.Spec)
	}
	if s := n.Status.Addresses; len(s) != 2 || s[0].Address != "10.11.12.13" || s[1].Address != "n1" {
		t.Errorf("addresses: %v", s)
	}
	for _, r := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods, v1.ResourceEphemeralStorage} {
		if q := n.Status.Allocatable[r]; q.Sign() <= 0 {
			t.Errorf("nothing of %s", r)
		}
	}
	if i := n.Status.NodeInfo; i.BootID == "" || i.MachineID == "" || !strings.HasPrefix(i.ContainerRuntimeVersion, runtimeStack.RuntimeName()+"://") {
		t.Errorf("nodeInfo: %+v", i)
	}
	a.eventually("images and pressure are told", func() error {
		n, err := plane.node("n1")
		for _, k := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
			if err == nil && conditionOf(n, k).Status == "" {
				err = fmt.Errorf("no condition %s", k)
			}
		}
		if err == nil && !slices.ContainsFunc(n.Status.Images, func(i v1.ContainerImage) bool { return slices.Contains(i.Names, "podd.test/busybox:1") }) {
			err = fmt.Errorf("got %v", n.Status.Images)
		}
		return err
	})
	var first *coordination.Lease
	a.eventually("there is a lease", func() (err error) { first, err = a.lease(); return err })
	if o := first.OwnerReferences; len(o) != 1 || o[0].UID != n.UID || *first.Spec.HolderIdentity != "n1" || *first.Spec.LeaseDurationSeconds != 40 {
		t.Errorf("lease: %+v", first)
	}
	a.eventually("it is renewed", func() error {
		l, err := a.lease()
		if err == nil && !l.Spec.RenewTime.After(first.Spec.RenewTime.Time) {
			err = errors.New("not yet")
		}
		return err
	})
}

func TestAdopts(t *testing.T) {
	made := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2", Labels: map[string]string{"mine": "x", v1.LabelHostname: "old"}}}
	made.Spec.Taints = []v1.Taint{{Key: "kept", Effect: v1.TaintEffectNoSchedule}}
	made.Status.Capacity = v1.ResourceList{"example.com/dongle": resource.MustParse("4")}
	if err := plane.ask(http.MethodPost, "/api/v1/nodes", made, nil); err != nil {
		t.Fatal(err)
	}
	n := newAgent(t, "n2", "--register-with-taints=a=b:NoSchedule").start().ready()
	q := n.Status.Allocatable["example.com/dongle"]
	if n.Labels["mine"] != "x" || n.Labels[v1.LabelHostname] != "n2" || q.Value() != 4 {
		t.Errorf("got labels %v, allocatable %v", n.Labels, n.Status.Allocatable)
	}
	if slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == "a" }) {
		t.Errorf("taints: %v", n.Spec.Taints)
	}
}

func TestDeleted(t *testing.T) {
	a := newAgent(t, "n3").start()
	before := a.ready()
	a.pod("web")
	a.runs("web")
	if err := plane.ask(http.MethodDelete, "/api/v1/nodes/n3", nil, nil); err != nil {
		t.Fatal(err)
	}
	a.tells("node n3 was deleted from the cluster", true)
	if _, err := plane.node("n3"); !errors.Is(err, errNone) {
		t.Errorf("it is there again: %v", err)
	}
	a.kill()
	a.start()
	if after := a.ready(); after.UID == before.UID {
		t.Error("it is the same")
	}
	a.runs("web")
	a.tells("was deleted", false)
	a.eventually("the lease is of the new node", func() error {
		n, nerr := plane.node("n3")
		l, err := a.lease()
		if err = errors.Join(err, nerr); err == nil && l.OwnerReferences[0].UID != n.UID {
			err = fmt.Errorf("of %v", l.OwnerReferences)
		}
		return err
	})
}

// renewed waits until the lease was renewed since a time.
func (a *agent) renewed(since time.Time) {
	a.t.Helper()
	a.eventually("the lease is renewed", func() error {
		l, err := a.lease()
		if err == nil && l.Spec.RenewTime.Time.Before(since) {
			err = errors.New("not yet")
		}
		return err
	})
}

// An API server that is killed and comes back touches no pod, and is told of once.
func TestOutage(t *testing.T) {
	a := newAgent(t, "n4").start()
	a.ready()
	a.pod("before")
	a.runs("before")
	back := plane.away(t)
	a.tells("cannot be reached", true)
	a.pod("meanwhile")
	a.runs("meanwhile")
	back()
	since := time.Now()
	a.tells("cannot be reached", false)
	a.renewed(since)
	t.Logf("well %s after the return", time.Since(since).Round(time.Millisecond))
	a.runs("before")
	if n := a.said("cannot be reached"); n != 1 {
		t.Errorf("told %d times in the log", n)
	}
	// A status that others spoiled is put right.
	patch := map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "Unknown"}}}}
	if err := plane.ask(http.MethodPatch, "/api/v1/nodes/n4/status", patch, nil); err != nil {
		t.Fatal(err)
	}
	a.ready()
}

// One who answers never keeps no pod from running, and a broken kubeconfig no node
// from being one.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := newAgent(t, "n5")
	text, err := os.ReadFile(filepath.Join(plane.dir, "n5.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(a.dir, "kubeconfig")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.ReplaceAll(string(text), plane.url, "https://"+l.Addr().String()))
	a.flags = append(a.flags, "--kubeconfig", file)
	a.start()
	a.pod("web")
	a.runs("web")
	a.tells("within 10s", true)
	write(string(text)) // another file is another cluster
	a.ready()
	a.tells("no response from the cluster", false)

	write("clusters: [") // half of one is none
	a.tells("the previous one stays in use", true)
	a.renewed(time.Now())
	write(string(text))
	a.tells("the previous one stays in use", false)
}

func TestForbidden(t *testing.T) {
	a := newAgent(t, "n6")
	a.flags = append(a.flags, "--kubeconfig", filepath.Join(plane.dir, "n7.kubeconfig"))
	a.start()
	a.pod("web")
	a.runs("web")
	a.tells("the kubeconfig's user must be system:node:NAME", true)
	if n := a.said("forbids a request"); n != 1 {
		t.Errorf("told %d times in the log", n)
	}
}

// A node that does nothing asks for little: its lease, and now and then its status.
func TestIdle(t *testing.T) {
	a := newAgent(t, "n7").start()
	a.ready()
	a.eventually("there is a lease", func() error { _, err := a.lease(); return err })
	time.Sleep(15 * time.Second) // the images were told
	since := time.Now()
	time.Sleep(time.Minute)
	n := plane.asked(t, "n7", since)
	t.Logf("in a minute: %v", n)
	if n["update leases"] < 4 || n["update leases"] > 7 || n["patch nodes/status"] > 1 || len(n) > 2 {
		t.Errorf("in a minute: %v", n)
	}
}
