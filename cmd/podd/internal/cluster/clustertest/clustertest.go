// Package clustertest contains an API server and objects for the tests of package cluster and the packages
// below it.
package clustertest

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
)

// Noon is a time for tests.
var Noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// NewBoundPod returns a pod that is bound to the node n1 and has managed fields.
func NewBoundPod(name, image string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "test"}}},
		Spec:       v1.PodSpec{NodeName: "n1", Containers: []v1.Container{{Name: "app", Image: image}}},
	}
}

// NewStaticPod returns the pod in the manifest text, in the form in which the View contains it.
func NewStaticPod(t *testing.T, text string) *v1.Pod {
	t.Helper()
	f := decode.File([]byte(text), decode.Options{Kind: manifest.KindFile, Path: "/m/web.yaml", NodeName: "n1", Now: Noon})
	if len(f.Pods) != 1 {
		t.Fatal(f.Problems)
	}
	return f.Pods[0].Object
}

// WebManifest is the manifest of the pod web.
const WebManifest = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: main, image: i}]
`

// NewNodeWithUID returns the Node n1 with a UID.
func NewNodeWithUID(uid types.UID) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: uid}}
}

// NewLocalNode returns the Node of a ready node as the View contains it.
func NewLocalNode() *v1.Node {
	amounts := v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourcePods: resource.MustParse("110")}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "own", Labels: map[string]string{
			v1.LabelHostname: "n1", v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64", "tier": "edge",
		}},
		Status: v1.NodeStatus{
			Capacity: amounts, Allocatable: amounts.DeepCopy(),
			Addresses: []v1.NodeAddress{
				{Type: v1.NodeInternalIP, Address: "10.0.0.1"}, {Type: v1.NodeInternalIP, Address: "2001:db8::1"}, {Type: v1.NodeHostName, Address: "n1"},
			},
			Conditions: []v1.NodeCondition{
				{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
				{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"},
			},
			Images:   []v1.ContainerImage{{Names: []string{"web"}, SizeBytes: 1}},
			NodeInfo: v1.NodeSystemInfo{BootID: "b1", Swap: &v1.NodeSwapStatus{Capacity: new(int64(7))}},
		},
	}
}

// NodeCondition returns the condition of a type. It ends the test if there is none.
func NodeCondition(t *testing.T, n *v1.Node, conditionType v1.NodeConditionType) v1.NodeCondition {
	t.Helper()
	for _, c := range n.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	t.Fatalf("got no condition %s, want one in %v", conditionType, n.Status.Conditions)
	return v1.NodeCondition{}
}

// Kubeconfig is a kubeconfig with a token. It names a CA file that does not exist. The password and the
// token are hunter2.
const Kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://user:hunter2@api:6443", certificate-authority: ca.crt}}]
users:
- name: u
  user:
    token: hunter2
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

// NewPodWithUID returns a pod with the UID "uid-" and its name.
func NewPodWithUID(name string) *v1.Pod {
	p := NewBoundPod(name, "web:1")
	p.UID = types.UID("uid-" + name)
	return p
}

// PodNames returns the names of pods. A deleted pod is shown as its name, ":" and its grace period.
func PodNames(all []*manifest.Pod) string {
	var names []string
	for _, p := range all {
		if name := p.Key.Name; p.Deletion != nil {
			names = append(names, name+":"+p.Deletion.GracePeriod.String())
		} else {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
