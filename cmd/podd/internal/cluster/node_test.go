package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"

	"podd/server"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// localNode returns the Node of a ready node as the View contains it.
func localNode() *v1.Node {
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

// TestNewNode_Unschedulable checks that an unschedulable Node has the unschedulable taint, which the
// API server expects. The Node must have the taint once, even if the options contain the taint, too.
func TestNewNode_Unschedulable(t *testing.T) {
	want := []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}}
	for _, taints := range [][]v1.Taint{nil, want} {
		n := (&Options{NodeName: "n1", Unschedulable: true, Taints: taints}).newNode(localNode(), noon)
		if diff := cmp.Diff(want, n.Spec.Taints); diff != "" || !n.Spec.Unschedulable {
			t.Errorf("options with taints %v: got spec %+v, want an unschedulable Node with one taint (-want +got):\n%s", taints, n.Spec, diff)
		}
	}
}

// nodeCondition returns the condition of a type. It ends the test if there is none.
func nodeCondition(t *testing.T, n *v1.Node, conditionType v1.NodeConditionType) v1.NodeCondition {
	t.Helper()
	for _, c := range n.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	t.Fatalf("got no condition %s, want one in %v", conditionType, n.Status.Conditions)
	return v1.NodeCondition{}
}

func TestNewNode(t *testing.T) {
	taint := v1.Taint{Key: "a", Effect: v1.TaintEffectNoExecute}
	o := &Options{NodeName: "n1", Taints: []v1.Taint{taint}, ProviderID: "x://y", HasExternalCloud: true, EnableControllerAttachDetach: true}
	n := o.newNode(localNode(), noon)
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
	local := localNode().Status.Addresses
	fromCloud := []v1.NodeAddress{{Type: v1.NodeExternalIP, Address: "192.0.2.9"}}
	for _, c := range []struct {
		name   string
		o      Options
		stored []v1.NodeAddress
		want   []v1.NodeAddress
	}{
		{"no cloud controller", Options{}, fromCloud, local},
		{"set by a cloud controller", Options{HasExternalCloud: true, ProvidedIP: "10.0.0.1"}, fromCloud, fromCloud},
		{"set by the user, cloud controller has not set addresses yet", Options{HasExternalCloud: true, ProvidedIP: "10.0.0.1"}, nil, local},
		{"not set by the user, cloud controller has not set addresses yet", Options{HasExternalCloud: true}, nil, local[2:]},
	} {
		if diff := cmp.Diff(c.want, c.o.nodeAddresses(c.stored, local)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	loopback := []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}, local[2]}
	if diff := cmp.Diff(local[2:], (&Options{}).nodeAddresses(nil, loopback)); diff != "" {
		t.Errorf("only loopback, as before DHCP (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(loopback, (&Options{ProvidedIP: "127.0.0.1"}).nodeAddresses(nil, loopback)); diff != "" {
		t.Errorf("loopback set by the user (-want +got):\n%s", diff)
	}
}

func TestAdoptedNode(t *testing.T) {
	stored := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", Labels: map[string]string{v1.LabelHostname: "old", "mine": "x", "tier": "core"}}}
	stored.Spec.Taints = []v1.Taint{{Key: "kept"}}
	stored.Annotations = map[string]string{annotationAttachDetach: "true", annotationProvidedIP: "192.0.2.1"}
	o := &Options{NodeName: "n1", Taints: []v1.Taint{{Key: "new"}}}
	n := o.updatedNode(o.adoptedNode(stored, localNode()), localNode(), noon)
	if n.UID != "u" || n.Labels[v1.LabelHostname] != "n1" || n.Labels["mine"] != "x" || n.Labels["tier"] != "core" {
		t.Errorf("got metadata %+v, want UID u, the local hostname label, and the labels mine and tier unchanged", n.ObjectMeta)
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "kept" || len(n.Annotations) != 0 {
		t.Errorf("got taints %v, annotations %v; want only the taint \"kept\" and no annotations", n.Spec.Taints, n.Annotations)
	}
}

// TestRun_NewHost checks that the first status of a new host sets the extended resources of an existing
// Node to 0, but later statuses and other hosts keep what administrators have set.
func TestRun_NewHost(t *testing.T) {
	const gpu = v1.ResourceName("example.com/gpu")
	for isNew, want := range map[bool]int64{true: 0, false: 2} {
		prepare := func(l *testNode, o *Options) {
			o.IsNewHost = isNew
			amounts := v1.ResourceList{gpu: resource.MustParse("2"), v1.ResourceCPU: resource.MustParse("64")}
			l.node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}, Status: v1.NodeStatus{Capacity: amounts, Allocatable: amounts.DeepCopy()}}
		}
		runNode(t, prepare, func(l *testNode) {
			check := func(when string, want int64) {
				t.Helper()
				s := l.storedNode().Status
				if capacity, allocatable := s.Capacity[gpu], s.Allocatable[gpu]; capacity.Value() != want || allocatable.Value() != want || s.Capacity.Cpu().Value() != 2 {
					t.Errorf("new host %t, %s: got capacity %v, allocatable %v, want %d of %s and 2 CPUs", isNew, when, s.Capacity, s.Allocatable, want, gpu)
				}
			}
			check("first status", want)
			n := l.storedNode().DeepCopy()
			n.Status.Capacity[gpu], n.Status.Allocatable[gpu] = resource.MustParse("3"), resource.MustParse("3")
			l.change(func() { l.putNode(n, "MODIFIED") })
			l.advance(10 * time.Minute)
			check("after a change by an administrator", 3)
		})
	}
}

// TestRun_NodeSyncedFile checks that podd creates the file after the first successful sync of the Node.
func TestRun_NodeSyncedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node-synced")
	prepare := func(l *testNode, o *Options) {
		o.NodeSyncedFile = file
		l.fault = func(q *http.Request) (*http.Response, error) {
			if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/nodes") {
				return nil, errors.New("the API server is unreachable")
			}
			return nil, nil
		}
	}
	runNode(t, prepare, func(l *testNode) {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("before the first sync: got error %v, want %v", err, fs.ErrNotExist)
		}
		l.change(func() { l.fault = nil })
		l.advance(time.Minute)
		if _, err := os.Stat(file); err != nil {
			t.Errorf("after the first sync: got error %v, want none", err)
		}
	})
}

// TestUpdatedNode_Kept checks that updatedNode keeps status fields that other clients write, and
// fields that the local Node does not contain yet because podd is starting. It must remove huge pages
// and declared features that this node does not have.
func TestUpdatedNode_Kept(t *testing.T) {
	stored := (&Options{NodeName: "n1"}).newNode(localNode(), noon)
	gpu, huge := v1.ResourceName("example.com/gpu"), v1.ResourceName("hugepages-1Mi")
	stored.Status.Capacity[gpu], stored.Status.Capacity[huge] = resource.MustParse("4"), resource.MustParse("4Mi")
	stored.Status.Allocatable[huge] = resource.MustParse("4Mi")
	stored.Status.VolumesAttached = []v1.AttachedVolume{{Name: "v"}}
	stored.Status.Conditions = append(stored.Status.Conditions, v1.NodeCondition{Type: "KernelDeadlock", Status: v1.ConditionFalse})
	starting := localNode()
	starting.Status.DeclaredFeatures = []string{"B"}
	stored.Status.DeclaredFeatures = []string{"A", "B"} // an older podd has written these features
	starting.Status.Images, starting.Status.Conditions = nil, starting.Status.Conditions[1:]
	n := (&Options{NodeName: "n1"}).updatedNode(stored, starting, noon.Add(time.Hour))
	if q := n.Status.Allocatable[gpu]; q.Value() != 4 {
		t.Errorf("resource of another client: got allocatable %v, want 4", q.String())
	}
	if _, ok := n.Status.Capacity[huge]; ok || len(n.Status.VolumesAttached) != 1 || len(n.Status.Images) != 1 {
		t.Errorf("got status %+v, want no huge pages, one attached volume and one image", n.Status)
	}
	if got := n.Status.DeclaredFeatures; !slices.Equal(got, []string{"B"}) {
		t.Errorf("declared features: got %v, want those of the local Node, [B]", got)
	}
	nodeCondition(t, n, "KernelDeadlock")
	nodeCondition(t, n, v1.NodeMemoryPressure)
}

// TestUpdatedNode_Transitions checks that the transition time of a condition changes only if its
// status changes.
func TestUpdatedNode_Transitions(t *testing.T) {
	o := &Options{NodeName: "n1"}
	n := o.newNode(localNode(), noon)
	later := noon.Add(time.Minute)
	same := o.updatedNode(n, localNode(), later)
	if isNodeChanged(n, same) {
		t.Error("isNodeChanged for a Node with only a new heartbeat time: got true, want false")
	}
	if c := nodeCondition(t, same, v1.NodeReady); !c.LastTransitionTime.Equal(new(metav1.NewTime(noon))) || !c.LastHeartbeatTime.Equal(new(metav1.NewTime(later))) {
		t.Errorf("same status: got %v, want the old transition time and the new heartbeat time", c)
	}
	same.Status.Conditions[1].Status = v1.ConditionUnknown // as the node controller sets it
	changed := o.updatedNode(same, localNode(), later)
	if c := nodeCondition(t, changed, v1.NodeReady); c.Status != v1.ConditionTrue || !c.LastTransitionTime.Equal(new(metav1.NewTime(later))) {
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
	m := localNode()
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
	o := &Options{NodeName: "n1", EnableControllerAttachDetach: pick("attach", 1) == 1, ProvidedIP: "10.0.0.1", HasExternalCloud: pick("cloud", 1) == 1}
	m.Status.Conditions[0].Status = []v1.ConditionStatus{v1.ConditionFalse, v1.ConditionTrue}[pick("memory", 1)]
	if pick("config", 1) == 1 {
		m.Status.Conditions = append(m.Status.Conditions, v1.NodeCondition{Type: server.ConfigCondition, Status: v1.ConditionTrue})
	}
	return o.newNode(m, noon.Add(time.Duration(pick("minutes", 3))*time.Minute))
}

// TestRun_ConfigCondition checks that podd writes its condition KubeletConfigOk, and removes it when the
// View no longer contains it. Conditions of other clients must remain.
func TestRun_ConfigCondition(t *testing.T) {
	withCondition := localNode()
	withCondition.Status.Conditions = append(withCondition.Status.Conditions, v1.NodeCondition{Type: server.ConfigCondition, Status: v1.ConditionTrue})
	prepare := func(l *testNode, _ *Options) {
		n := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: "KernelDeadlock", Status: v1.ConditionFalse}}}}
		l.putNode(n, "ADDED")
		l.state = server.NewLatestView(&server.View{Revision: 1, NodeObject: withCondition})
	}
	runNode(t, prepare, func(l *testNode) {
		check := func(when string, want bool) {
			t.Helper()
			stored := l.storedNode()
			nodeCondition(t, stored, "KernelDeadlock")
			if got := slices.ContainsFunc(stored.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == server.ConfigCondition }); got != want {
				t.Errorf("%s: got conditions %v, want KubeletConfigOk %t", when, stored.Status.Conditions, want)
			}
		}
		check("at the start", true)
		publish := func(n *v1.Node) {
			next := *l.state.View()
			next.Revision, next.NodeObject = next.Revision+1, n
			l.state.Publish(&next)
			l.advance(time.Second)
		}
		publish(localNode())
		check("after the condition was removed from the View", false)
		l.countRequests()
		l.advance(time.Minute)
		if n := l.countRequests("PATCH nodes"); n[0] > 0 {
			t.Errorf("after the condition was removed: got %d patches of the Node in a minute, want none", n[0])
		}
		publish(withCondition)
		check("after the condition was added again", true)
	})
}
