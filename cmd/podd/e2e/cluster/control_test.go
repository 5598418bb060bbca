//go:build e2e

package cluster

import (
	"fmt"
	"net/http"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestScheduledPod checks that the controllers consider podd's node healthy, and that the
// scheduler binds a pod to it. The pod restarts all its containers by a rule. Therefore the
// scheduler requires a node that declares this feature in its status.
func TestScheduledPod(t *testing.T) {
	plane.startControllers(t)
	newAgent(t, "n8").start().untilReady()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "scheduled"}, Spec: v1.PodSpec{
		NodeSelector: map[string]string{v1.LabelHostname: "n8"},
		Containers: []v1.Container{{
			Name: "main", Image: "podd.test/busybox:1", RestartPolicy: new(v1.ContainerRestartPolicyNever),
			RestartPolicyRules: []v1.ContainerRestartRule{{
				Action:    v1.ContainerRestartRuleActionRestartAllContainers,
				ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
			}},
		}},
	}}
	const pods = "/api/v1/namespaces/default/pods"
	if err := plane.do(http.MethodPost, pods, pod, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.do(http.MethodDelete, pods+"/scheduled?gracePeriodSeconds=0", nil, nil) })
	eventually(t, "the pod is bound to the node", func() error {
		n, err := plane.node("n8")
		if err != nil {
			return err
		}
		if err := plane.do(http.MethodGet, pods+"/scheduled", nil, pod); err != nil {
			return err
		}
		if pod.Spec.NodeName != "n8" {
			return fmt.Errorf("got node %q, status %+v, taints %v, declared features %v, want node n8", pod.Spec.NodeName, pod.Status, n.Spec.Taints, n.Status.DeclaredFeatures)
		}
		return nil
	})
}
