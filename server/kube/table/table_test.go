package table

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificates "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(epoch.Add(-d)) }

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, CreationTimestamp: ago(3 * time.Hour)}
}

func pointerTo[T any](v T) *T { return &v }

// text formats a table as "kubectl get -o wide" prints it, with brackets around the values that are
// missing without -o wide.
func text(t *testing.T, table *metav1.Table) []string {
	t.Helper()
	var headers []string
	for _, c := range table.ColumnDefinitions {
		if c.Description == "" || c.Type != "string" {
			t.Errorf("column %s: got type %q and description %q, want type \"string\" and a description", c.Name, c.Type, c.Description)
		}
		headers = append(headers, bracketed(strings.ToUpper(c.Name), c.Priority))
	}
	lines := []string{strings.Join(headers, " | ")}
	for _, r := range table.Rows {
		if len(r.Cells) != len(table.ColumnDefinitions) {
			t.Fatalf("row %v: got %d cells, want %d as there are columns", r.Cells, len(r.Cells), len(table.ColumnDefinitions))
		}
		var cells []string
		for i, c := range r.Cells {
			cells = append(cells, bracketed(fmt.Sprint(c), table.ColumnDefinitions[i].Priority))
		}
		lines = append(lines, strings.Join(cells, " | "))
	}
	return lines
}

func bracketed(s string, priority int32) string {
	if priority > 0 {
		return "[" + s + "]"
	}
	return s
}

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		name    string
		objects []metav1.Object
		want    []string
	}{
		{"pods", []metav1.Object{
			&v1.Pod{ObjectMeta: named("a")},
			&v1.Pod{
				ObjectMeta: named("b"),
				Spec:       v1.PodSpec{NodeName: "n", ReadinessGates: []v1.PodReadinessGate{{ConditionType: "x/y"}, {ConditionType: "x/z"}}},
				Status: v1.PodStatus{
					Phase: v1.PodRunning, PodIP: "10.0.0.1", PodIPs: []v1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}, NominatedNodeName: "m",
					Conditions: []v1.PodCondition{{Type: "x/y", Status: v1.ConditionTrue}, {Type: "x/z", Status: v1.ConditionFalse}},
				},
			},
		}, []string{
			"NAME | READY | STATUS | RESTARTS | AGE | [IP] | [NODE] | [NOMINATED NODE] | [READINESS GATES]",
			"a | 0/0 |  | 0 | 3h | [<none>] | [<none>] | [<none>] | [<none>]",
			"b | 0/0 | Running | 0 | 3h | [10.0.0.1] | [n] | [m] | [1/2]",
		}},
		{"nodes", []metav1.Object{
			&v1.Node{ObjectMeta: named("a")},
			&v1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{
					"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/edge": "x", "node-role.kubernetes.io/": "", "kubernetes.io/role": "edge",
				}},
				Spec: v1.NodeSpec{Unschedulable: true},
				Status: v1.NodeStatus{
					Conditions: []v1.NodeCondition{{Type: v1.NodeDiskPressure, Status: v1.ConditionTrue}, {Type: v1.NodeReady, Status: v1.ConditionTrue}},
					Addresses:  []v1.NodeAddress{{Type: v1.NodeHostName, Address: "b"}, {Type: v1.NodeInternalIP, Address: "10.0.0.2"}, {Type: v1.NodeInternalIP, Address: "fd00::2"}},
					NodeInfo:   v1.NodeSystemInfo{KubeletVersion: "v1.34.4", OSImage: "Debian", KernelVersion: "6.1", ContainerRuntimeVersion: "containerd://2.2"},
				},
			},
			&v1.Node{ObjectMeta: named("c"), Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown}}}},
		}, []string{
			"NAME | STATUS | ROLES | AGE | VERSION | [INTERNAL-IP] | [EXTERNAL-IP] | [OS-IMAGE] | [KERNEL-VERSION] | [CONTAINER-RUNTIME]",
			"a | Unknown | <none> | 3h |  | [<none>] | [<none>] | [<unknown>] | [<unknown>] | [<unknown>]",
			"b | Ready,SchedulingDisabled | edge,worker | <unknown> | v1.34.4 | [10.0.0.2] | [<none>] | [Debian] | [6.1] | [containerd://2.2]",
			"c | NotReady | <none> | 3h |  | [<none>] | [<none>] | [<unknown>] | [<unknown>] | [<unknown>]",
		}},
		{"events", []metav1.Object{
			&v1.Event{
				ObjectMeta: named("a.1"), FirstTimestamp: ago(time.Hour), LastTimestamp: ago(5 * time.Second), Count: 7,
				Type: "Warning", Reason: "BackOff", Message: " restarting\n", Source: v1.EventSource{Component: "podd", Host: "n"},
				InvolvedObject: v1.ObjectReference{Kind: "Pod", Name: "a", FieldPath: "spec.containers{c}"},
			},
			&v1.Event{
				ObjectMeta: named("a.2"), EventTime: metav1.NewMicroTime(epoch.Add(-time.Minute)), Type: "Normal", Reason: "Started",
				ReportingController: "podd", InvolvedObject: v1.ObjectReference{Kind: "Node"},
			},
			&v1.Event{
				ObjectMeta: named("a.3"), EventTime: metav1.NewMicroTime(epoch.Add(-time.Hour)),
				Series: &v1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(epoch.Add(-time.Second))},
			},
			&v1.Event{ObjectMeta: named("a.4")},
		}, []string{
			"LAST SEEN | TYPE | REASON | OBJECT | [SUBOBJECT] | [SOURCE] | MESSAGE | [FIRST SEEN] | [COUNT] | [NAME]",
			"5s | Warning | BackOff | pod/a | [spec.containers{c}] | [podd, n] | restarting | [60m] | [7] | [a.1]",
			"60s | Normal | Started | node | [] | [podd] |  | [60s] | [1] | [a.2]",
			"1s |  |  |  | [] | [] |  | [60m] | [3] | [a.3]",
			"<unknown> |  |  |  | [] | [] |  | [<unknown>] | [1] | [a.4]",
		}},
		{"namespaces", []metav1.Object{
			&v1.Namespace{ObjectMeta: named("a"), Status: v1.NamespaceStatus{Phase: v1.NamespaceActive}},
		}, []string{"NAME | STATUS | AGE", "a | Active | 3h"}},
		{"configmaps", []metav1.Object{
			&v1.ConfigMap{ObjectMeta: named("a"), Data: map[string]string{"x": "1", "y": "2"}, BinaryData: map[string][]byte{"z": nil}},
		}, []string{"NAME | DATA | AGE", "a | 3 | 3h"}},
		{"secrets", []metav1.Object{
			&v1.Secret{ObjectMeta: named("a"), Type: v1.SecretTypeOpaque, Data: map[string][]byte{"password": []byte("hunter2")}},
		}, []string{"NAME | TYPE | DATA | AGE", "a | Opaque | 1 | 3h"}},
		{"clustertrustbundles", []metav1.Object{
			&certificates.ClusterTrustBundle{ObjectMeta: named("a")},
			&certificates.ClusterTrustBundle{ObjectMeta: named("b"), Spec: certificates.ClusterTrustBundleSpec{SignerName: "example.com/mesh"}},
		}, []string{"NAME | SIGNERNAME", "a | <none>", "b | example.com/mesh"}},
		{"csidrivers", []metav1.Object{
			&storage.CSIDriver{ObjectMeta: named("a")},
			&storage.CSIDriver{ObjectMeta: named("b"), Spec: storage.CSIDriverSpec{
				AttachRequired: new(false), PodInfoOnMount: new(true), VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent, storage.VolumeLifecycleEphemeral},
			}},
		}, []string{
			"NAME | ATTACHREQUIRED | PODINFOONMOUNT | STORAGECAPACITY | TOKENREQUESTS | REQUIRESREPUBLISH | MODES | AGE",
			"a | true | false | false | <unset> | false | <none> | 3h",
			"b | false | true | false | <unset> | false | Persistent,Ephemeral | 3h",
		}},
		{"persistentvolumes", []metav1.Object{
			&v1.PersistentVolume{ObjectMeta: named("a")},
			&v1.PersistentVolume{
				ObjectMeta: named("b"),
				Spec: v1.PersistentVolumeSpec{
					Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}, ClaimRef: &v1.ObjectReference{Namespace: "d", Name: "c"},
					AccessModes:                   []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany, v1.ReadWriteOnce, v1.ReadOnlyMany, v1.ReadWriteOncePod},
					PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain, StorageClassName: "fast", VolumeAttributesClassName: pointerTo("gold"),
					VolumeMode: pointerTo(v1.PersistentVolumeBlock),
				},
				Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound, Reason: "r"},
			},
			&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
				Name: "c", DeletionTimestamp: pointerTo(ago(time.Second)), Annotations: map[string]string{v1.BetaStorageClassAnnotation: "old"},
			}, Spec: v1.PersistentVolumeSpec{StorageClassName: "new"}},
		}, []string{
			"NAME | CAPACITY | ACCESS MODES | RECLAIM POLICY | STATUS | CLAIM | STORAGECLASS | VOLUMEATTRIBUTESCLASS | REASON | AGE | [VOLUMEMODE]",
			"a | 0 |  |  |  |  |  | <unset> |  | 3h | [<unset>]",
			"b | 1Gi | RWO,ROX,RWOP | Retain | Bound | d/c | fast | gold | r | 3h | [Block]",
			"c | 0 |  |  | Terminating |  | old | <unset> |  | <unknown> | [<unset>]",
		}},
		{"persistentvolumeclaims", []metav1.Object{
			&v1.PersistentVolumeClaim{
				ObjectMeta: named("a"), Spec: v1.PersistentVolumeClaimSpec{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}},
				Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
			},
			&v1.PersistentVolumeClaim{
				ObjectMeta: named("b"),
				Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "v", StorageClassName: pointerTo("fast"), VolumeMode: pointerTo(v1.PersistentVolumeFilesystem)},
				Status: v1.PersistentVolumeClaimStatus{
					Phase: v1.ClaimBound, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteMany},
					Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")},
				},
			},
		}, []string{
			"NAME | STATUS | VOLUME | CAPACITY | ACCESS MODES | STORAGECLASS | VOLUMEATTRIBUTESCLASS | AGE | [VOLUMEMODE]",
			"a | Pending |  |  |  |  | <unset> | 3h | [<unset>]",
			"b | Bound | v | 2Gi | RWX | fast | <unset> | 3h | [Filesystem]",
		}},
		{"others", []metav1.Object{&coordinationv1.Lease{ObjectMeta: named("a")}}, []string{"NAME | AGE", "a | 3h"}},
		{"nothing", nil, []string{"NAME | AGE"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := snapshot(tt.objects)
			table := New(tt.objects, epoch)
			if diff := cmp.Diff(tt.want, text(t, table)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, snapshot(tt.objects)); diff != "" {
				t.Errorf("an object was modified:\n%s", diff)
			}
			table.DeepCopy() // panics if the type of a cell is not a JSON type
		})
	}
}

func snapshot(objects []metav1.Object) []runtime.Object {
	var all []runtime.Object
	for _, o := range objects {
		all = append(all, o.(runtime.Object).DeepCopyObject())
	}
	return all
}

// TestNew_RowConditions checks that rows of terminated pods have a condition, which clients use to
// dim them.
func TestNew_RowConditions(t *testing.T) {
	for phase, want := range map[v1.PodPhase]int{v1.PodRunning: 0, v1.PodSucceeded: 1, v1.PodFailed: 1} {
		rows := New([]*v1.Pod{{Status: v1.PodStatus{Phase: phase}}}, epoch).Rows
		c := rows[0].Conditions
		if len(c) != want || want == 1 && (c[0].Type != metav1.RowCompleted || c[0].Reason != string(phase) || c[0].Status != metav1.ConditionTrue) {
			t.Errorf("%s: got conditions %+v, want %d with the type Completed and the phase as reason", phase, c, want)
		}
	}
}
