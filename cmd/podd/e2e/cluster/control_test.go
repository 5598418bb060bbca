//go:build e2e

package cluster

import (
	"fmt"
	"net/http"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The controllers take podd's node for one that is well, and the scheduler gives it
// pods.
func TestScheduled(t *testing.T) {
	plane.control(t)
	newAgent(t, "n8").start().ready()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "scheduled"}, Spec: v1.PodSpec{
		NodeSelector: map[string]string{v1.LabelHostname: "n8"},
		Containers:   []v1.Container{{Name: "main", Image: "podd.test/busybox:1"}},
	}}
	const pods = "/api/v1/namespaces/default/pods"
	if err := plane.ask(http.MethodPost, pods, pod, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.ask(http.MethodDelete, pods+"/scheduled?gracePeriodSeconds=0", nil, nil) })
	eventually(t, "the pod is bound to the node", func() error {
		n, err := plane.node("n8")
		if err != nil {
			return err
		}
		if err := plane.ask(http.MethodGet, pods+"/scheduled", nil, pod); err != nil {
			return err
		}
		if pod.Spec.NodeName != "n8" {
			return fmt.Errorf("it is on %q; status %+v, taints %v", pod.Spec.NodeName, pod.Status, n.Spec.Taints)
		}
		return nil
	})
}
