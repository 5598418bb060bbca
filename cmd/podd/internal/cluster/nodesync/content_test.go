package nodesync

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"

	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/server"
)

// TestNewNode_Unschedulable checks that an unschedulable Node has the unschedulable taint, which the
// API server expects. The Node must have the taint once, even if the options contain the taint, too.
func TestNewNode_Unschedulable(t *testing.T) {
	want := []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}}
	for _, taints := range [][]v1.Taint{nil, want} {
		n := (&Options{NodeName: "n1", Config: Config{Unschedulable: true, Taints: taints}}).newNode(clustertest.NewLocalNode(), clustertest.Noon)
		if diff := cmp.Diff(want, n.Spec.Taints); diff != "" || !n.Spec.Unschedulable {
			t.Errorf("options with taints %v: got spec %+v, want an unschedulable Node with one taint (-want +got):\n%s", taints, n.Spec, diff)
		}
	}
}

func TestNewNode(t *testing.T) {
	taint := v1.Taint{Key: "a", Effect: v1.TaintEffectNoExecute}
	o := &Options{NodeName: "n1", Config: Config{Taints: []v1.Taint{taint}, ProviderID: "x://y", HasExternalCloud: true, EnableControllerAttachDetach: true}}
	n := o.newNode(clustertest.NewLocalNode(), clustertest.Noon)
	if n.UID != "" || n.Name != "n1" || n.Labels["tier"] != "edge" || n.Labels[v1.LabelOSStable] == "" || n.Annotations[annotationAttachDetach] != "true" {
		t.Errorf("metadata: got %+v, want the Node n1 without a UID, with the local labels and the annotation for attach and detach", n.ObjectMeta)
	}
	want := []v1.Taint{taint, {Key: taintUninitialized, Value: "true", Effect: v1.TaintEffectNoSchedule}}
	if diff := cmp.Diff(want, n.Spec.Taints); diff != "" || n.Spec.ProviderID != "x://y" {
		t.Errorf("spec: got %+v, want the provider ID x://y and other taints (-want +got):\n%s", n.Spec, diff)
	}
	if a := n.Status.Addresses; len(a) != 1 || a[0].Type != v1.NodeHostName {
		t.Errorf("addresses with a cloud controller: got %v, want only the hostname", a)
	}
	var conditions []string
	for _, c := range n.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	wantConditions := []string{"MemoryPressure=False KubeletHasSufficientMemory", "Ready=True KubeletReady"}
	if diff := cmp.Diff(wantConditions, conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if len(n.Status.Images) != 1 {
		t.Errorf("images: got %v, want one image", n.Status.Images)
	}
}

func TestAddresses(t *testing.T) {
	local := clustertest.NewLocalNode().Status.Addresses
	fromCloud := []v1.NodeAddress{{Type: v1.NodeExternalIP, Address: "192.0.2.9"}}
	for _, c := range []struct {
		name   string
		o      Config
		stored []v1.NodeAddress
		want   []v1.NodeAddress
	}{
		{"no cloud controller", Config{}, fromCloud, local},
		{"set by a cloud controller", Config{HasExternalCloud: true, ProvidedIP: "10.0.0.1"}, fromCloud, fromCloud},
		{"set by the user, cloud controller has not set addresses yet", Config{HasExternalCloud: true, ProvidedIP: "10.0.0.1"}, nil, local},
		{"not set by the user, cloud controller has not set addresses yet", Config{HasExternalCloud: true}, nil, local[2:]},
	} {
		if diff := cmp.Diff(c.want, c.o.Addresses(c.stored, local)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	loopback := []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}, local[2]}
	if diff := cmp.Diff(local[2:], (&Config{}).Addresses(nil, loopback)); diff != "" {
		t.Errorf("only loopback, as before DHCP (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(loopback, (&Config{ProvidedIP: "127.0.0.1"}).Addresses(nil, loopback)); diff != "" {
		t.Errorf("loopback set by the user (-want +got):\n%s", diff)
	}
}

func TestAdoptedNode(t *testing.T) {
	stored := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", Labels: map[string]string{v1.LabelHostname: "old", "mine": "x", "tier": "core"}}}
	stored.Spec.Taints = []v1.Taint{{Key: "kept"}}
	stored.Annotations = map[string]string{annotationAttachDetach: "true", annotationProvidedIP: "192.0.2.1"}
	o := &Options{NodeName: "n1", Config: Config{Taints: []v1.Taint{{Key: "new"}}}}
	n := o.updatedNode(o.adoptedNode(stored, clustertest.NewLocalNode()), clustertest.NewLocalNode(), clustertest.Noon)
	if n.UID != "u" || n.Labels[v1.LabelHostname] != "n1" || n.Labels["mine"] != "x" || n.Labels["tier"] != "core" {
		t.Errorf("got metadata %+v, want UID u, the local hostname label, and the labels mine and tier unchanged", n.ObjectMeta)
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "kept" || len(n.Annotations) != 0 {
		t.Errorf("got taints %v, annotations %v; want only the taint \"kept\" and no annotations", n.Spec.Taints, n.Annotations)
	}
}

// TestUpdatedNode_Kept checks that updatedNode keeps status fields that other clients write, and
// fields that the local Node does not contain yet because podd is starting. It must remove huge pages
// and declared features that this node does not have.
func TestUpdatedNode_Kept(t *testing.T) {
	stored := (&Options{NodeName: "n1"}).newNode(clustertest.NewLocalNode(), clustertest.Noon)
	gpu, huge := v1.ResourceName("example.com/gpu"), v1.ResourceName("hugepages-1Mi")
	stored.Status.Capacity[gpu], stored.Status.Capacity[huge] = resource.MustParse("4"), resource.MustParse("4Mi")
	stored.Status.Allocatable[huge] = resource.MustParse("4Mi")
	stored.Status.VolumesAttached = []v1.AttachedVolume{{Name: "v"}}
	stored.Status.Conditions = append(stored.Status.Conditions, v1.NodeCondition{Type: "KernelDeadlock", Status: v1.ConditionFalse})
	starting := clustertest.NewLocalNode()
	starting.Status.DeclaredFeatures = []string{"B"}
	stored.Status.DeclaredFeatures = []string{"A", "B"} // an older podd has written these features
	starting.Status.Images, starting.Status.Conditions = nil, starting.Status.Conditions[1:]
	n := (&Options{NodeName: "n1"}).updatedNode(stored, starting, clustertest.Noon.Add(time.Hour))
	if q := n.Status.Allocatable[gpu]; q.Value() != 4 {
		t.Errorf("resource of another client: got allocatable %v, want 4", q.String())
	}
	if _, ok := n.Status.Capacity[huge]; ok || len(n.Status.VolumesAttached) != 1 || len(n.Status.Images) != 1 {
		t.Errorf("got status %+v, want no huge pages, one attached volume and one image", n.Status)
	}
	if got := n.Status.DeclaredFeatures; !slices.Equal(got, []string{"B"}) {
		t.Errorf("declared features: got %v, want those of the local Node, [B]", got)
	}
	clustertest.NodeCondition(t, n, "KernelDeadlock")
	clustertest.NodeCondition(t, n, v1.NodeMemoryPressure)
}

// TestUpdatedNode_Transitions checks that the transition time of a condition changes only if its
// status changes.
func TestUpdatedNode_Transitions(t *testing.T) {
	o := &Options{NodeName: "n1"}
	n := o.newNode(clustertest.NewLocalNode(), clustertest.Noon)
	later := clustertest.Noon.Add(time.Minute)
	same := o.updatedNode(n, clustertest.NewLocalNode(), later)
	if isNodeChanged(n, same) {
		t.Error("isNodeChanged for a Node with only a new heartbeat time: got true, want false")
	}
	if c := clustertest.NodeCondition(t, same, v1.NodeReady); !c.LastTransitionTime.Equal(new(metav1.NewTime(clustertest.Noon))) || !c.LastHeartbeatTime.Equal(new(metav1.NewTime(later))) {
		t.Errorf("same status: got %v, want the old transition time and the new heartbeat time", c)
	}
	same.Status.Conditions[1].Status = v1.ConditionUnknown // as the node controller sets it
	changed := o.updatedNode(same, clustertest.NewLocalNode(), later)
	if c := clustertest.NodeCondition(t, changed, v1.NodeReady); c.Status != v1.ConditionTrue || !c.LastTransitionTime.Equal(new(metav1.NewTime(later))) {
		t.Errorf("changed status: got %v, want status True and the new transition time", c)
	}
	if !isNodeChanged(same, changed) {
		t.Error("isNodeChanged for a Node with a changed condition: got false, want true")
	}
}

// TestNodeStatusPatch checks for random Nodes a and b that the patch changes a to b, except the spec,
// and that the patch from a to a is empty.
func TestNodeStatusPatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawNode(t, "a"), drawNode(t, "b")
		text, err := nodeStatusPatch(a, b)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := json.Marshal(a)
		after, err := strategicpatch.StrategicMergePatch(before, text, v1.Node{})
		if err != nil {
			t.Fatalf("applying %s: %v", text, err)
		}
		var got v1.Node
		if err := json.Unmarshal(after, &got); err != nil {
			t.Fatal(err)
		}
		b.Spec = a.Spec
		b.Status.Conditions, got.Status.Conditions = normalizeConditions(b.Status.Conditions), normalizeConditions(got.Status.Conditions)
		if !equality.Semantic.DeepEqual(b, &got) {
			t.Fatalf("Node after the patch %s (-want +got):\n%s", text, cmp.Diff(b, &got))
		}
		if text, _ := nodeStatusPatch(a, a); string(text) != "{}" {
			t.Fatalf("equal Nodes: got patch %s, want {}", text)
		}
	})
}

// drawNode returns a random Node.
func drawNode(t *rapid.T, label string) *v1.Node {
	pick := func(what string, n int) int { return rapid.IntRange(0, n).Draw(t, label+" "+what) }
	m := clustertest.NewLocalNode()
	m.Status.NodeInfo.BootID = fmt.Sprint("b", pick("boot", 2))
	if pick("swap", 1) == 0 {
		m.Status.NodeInfo.Swap = nil
	}
	for i := range pick("amounts", 3) {
		m.Status.Capacity[v1.ResourceName(fmt.Sprint("example.com/r", i))] = *resource.NewQuantity(int64(pick("amount", 2)), resource.DecimalSI)
	}
	m.Status.Addresses = m.Status.Addresses[pick("addresses", 2):]
	m.Status.Conditions[1].Message = fmt.Sprint(pick("message", 2))
	for i := range pick("handlers", 2) {
		m.Status.RuntimeHandlers = append(m.Status.RuntimeHandlers, v1.NodeRuntimeHandler{Name: fmt.Sprint(i)})
	}
	m.Status.DeclaredFeatures = []string{"A", "B", "C"}[:pick("declared features", 3)]
	if pick("features", 1) == 1 {
		m.Status.Features = &v1.NodeFeatures{SupplementalGroupsPolicy: new(pick("groups", 1) == 1)}
	}
	m.Status.Images = nil
	for i := range pick("images", 3) {
		m.Status.Images = append(m.Status.Images, v1.ContainerImage{Names: []string{fmt.Sprint(i)}, SizeBytes: int64(pick("size", 2))})
	}
	o := &Options{NodeName: "n1", Config: Config{EnableControllerAttachDetach: pick("attach", 1) == 1, ProvidedIP: "10.0.0.1", HasExternalCloud: pick("cloud", 1) == 1}}
	m.Status.Conditions[0].Status = []v1.ConditionStatus{v1.ConditionFalse, v1.ConditionTrue}[pick("memory", 1)]
	if pick("config", 1) == 1 {
		m.Status.Conditions = append(m.Status.Conditions, v1.NodeCondition{Type: server.ConfigCondition, Status: v1.ConditionTrue})
	}
	return o.newNode(m, clustertest.Noon.Add(time.Duration(pick("minutes", 3))*time.Minute))
}
