//go:build e2e

package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// createPod creates a pod that is bound to the agent's node.
func (a *agent) createPod(p *v1.Pod) {
	a.t.Helper()
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if err := plane.do(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts", account, nil); err != nil && !strings.Contains(err.Error(), "AlreadyExists") {
		a.t.Fatal(err)
	}
	p.Spec.NodeName, p.Spec.HostNetwork, p.Spec.AutomountServiceAccountToken = a.node, true, new(false)
	if err := plane.do(http.MethodPost, "/api/v1/namespaces/default/pods", p, nil); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		_ = plane.do(http.MethodDelete, "/api/v1/namespaces/default/pods/"+p.Name, &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, nil)
	})
}

// untilStatus waits until the function isDone returns true for a pod in the cluster, and returns
// the pod.
func (a *agent) untilStatus(name, what string, isDone func(*v1.Pod) bool) (p *v1.Pod) {
	a.t.Helper()
	a.eventually("in the cluster, "+name+" "+what, func() (err error) {
		if p, err = plane.pod("default", name); err == nil && !isDone(p) {
			err = fmt.Errorf("got %+v", p.Status)
		}
		return err
	})
	return p
}

const gate = "example.com/gate"

// TestPodStatus checks that podd updates the status of pods in the cluster and keeps the
// conditions that other clients have set. podd must complete the deletion of a pod after the pod
// has stopped.
func TestPodStatus(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "w5").start()
	a.untilReady()
	once := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w5-once"}}
	once.Spec.RestartPolicy = v1.RestartPolicyNever
	once.Spec.Containers = []v1.Container{{Name: "main", Image: "podd.test/busybox:1", Command: []string{"true"}}}
	a.createPod(once)
	web := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w5-web", Finalizers: []string{"example.com/held"}}}
	web.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: gate}}
	web.Spec.Containers = []v1.Container{{Name: "main", Image: "podd.test/busybox:1", Command: []string{"sh", "-c", "trap 'exit 3' TERM; sleep 1000000 & wait"}}}
	a.createPod(web)

	a.untilStatus("w5-once", "has succeeded", func(p *v1.Pod) bool {
		return p.Status.Phase == v1.PodSucceeded && p.Status.ContainerStatuses[0].State.Terminated != nil
	})
	started := a.untilStatus("w5-web", "runs", func(p *v1.Pod) bool {
		return p.Status.Phase == v1.PodRunning && !isReady(p) && p.Status.ContainerStatuses[0].Ready
	})
	if s := started.Status; s.PodIP == "" || s.HostIP == "" || s.StartTime == nil || s.QOSClass != v1.PodQOSBestEffort {
		t.Errorf("got status %+v, want addresses, a start time and the QoS class BestEffort", s)
	}
	open := map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": gate, "status": "True"}}}}
	if err := plane.do(http.MethodPatch, "/api/v1/namespaces/default/pods/w5-web/status", open, nil); err != nil {
		t.Fatal(err)
	}
	a.untilStatus("w5-web", "is ready", func(p *v1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == gate && c.Status == v1.ConditionTrue {
				return isReady(p)
			}
		}
		return false
	})

	for _, name := range []string{"w5-web", "w5-once"} {
		if err := plane.do(http.MethodDelete, "/api/v1/namespaces/default/pods/"+name, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	a.untilStatus("w5-web", "is terminated", func(p *v1.Pod) bool {
		end := p.Status.ContainerStatuses[0].State.Terminated
		return p.Status.Phase == v1.PodFailed && end != nil && end.ExitCode == 3 && *p.DeletionGracePeriodSeconds == 0
	})
	free := map[string]any{"metadata": map[string]any{"finalizers": nil}}
	if err := plane.do(http.MethodPatch, "/api/v1/namespaces/default/pods/w5-web", free, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"w5-web", "w5-once"} {
		a.eventually(name+" is deleted", func() error {
			if _, err := plane.pod("default", name); !errors.Is(err, errNotFound) {
				return fmt.Errorf("got error %v, want not found", err)
			}
			return nil
		})
	}
}
