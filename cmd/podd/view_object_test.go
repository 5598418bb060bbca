package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// TestObjectViews: objects get what an apiserver would have given them, and a
// file's stands for a URL's of the same name.
func TestObjectViews(t *testing.T) {
	const text = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {from: here}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 2Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /srv}, storageClassName: ""}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: disk, storageClassName: ""}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: lost}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeName: none, storageClassName: ""}
`
	written := time.Unix(1700000000, 0)
	batch := func(source, kind string) manifest.Batch {
		f, err := decodeText(text, manifest.Options{Kind: kind, Source: source, Path: source + "/x.yaml", Node: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		b := manifest.Collect(source, kind, f)
		b.Complete = true
		b.Files = []manifest.FileState{{Path: source + "/x.yaml", Version: written}}
		return b
	}
	set := manifest.Merge([]manifest.Batch{batch("https://a.example", manifest.KindURL), batch("/etc/m", manifest.KindFile)})
	views := newObjectViews()
	o := views.of(set)
	if len(o.ConfigMaps) != 1 || o.ConfigMaps[0].Path != "/etc/m/x.yaml" || o.ConfigMaps[0].Line != 2 {
		t.Fatalf("got %+v", o.ConfigMaps)
	}
	if c := o.ConfigMaps[0].Object; c.GetUID() == "" || !c.GetCreationTimestamp().Time.Equal(written) || c.GetObjectKind().GroupVersionKind().Kind != "ConfigMap" {
		t.Errorf("got %+v", c)
	}
	for n, want := range []struct {
		name, volume string
		phase        v1.PersistentVolumeClaimPhase
	}{{"data", "disk", v1.ClaimBound}, {"lost", "none", v1.ClaimPending}} {
		if c := o.Claims[n].Object.(*v1.PersistentVolumeClaim); c.Name != want.name || c.Spec.VolumeName != want.volume || c.Status.Phase != want.phase {
			t.Errorf("got %s of %s, %s", c.Name, c.Spec.VolumeName, c.Status.Phase)
		}
	}
	if pv := o.Volumes[0].Object.(*v1.PersistentVolume); pv.Status.Phase != v1.VolumeBound || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Name != "data" {
		t.Errorf("got %+v", pv)
	}
	api := newObjectViews()
	api.written = "/var/api"
	both := manifest.Merge([]manifest.Batch{batch("/etc/m", manifest.KindFile), batch("/var/api", manifest.KindFile)})
	if o := api.of(both); len(o.ConfigMaps) != 1 || o.ConfigMaps[0].Path != "/var/api/x.yaml" {
		t.Errorf("the API is shown another's: %+v", o.ConfigMaps[0])
	}
	for _, own := range set.Objects { // what was decoded is not written to
		if c := own.ConfigMaps[types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "settings"}]; c.UID != "" {
			t.Error("the manifest's own object has a UID")
		}
	}
}

// TestObjectViewsAgain: each claim's binding is looked up once, and what is as it
// was keeps its pointer.
func TestObjectViewsAgain(t *testing.T) {
	const n = 200
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v%d}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /srv}, claimRef: {name: c%d}}\n", i, i)
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c%d}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", i)
	}
	text.WriteString("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	f, err := decodeText(text.String(), manifest.Options{Kind: manifest.KindFile, Source: "x", Path: "x"})
	if err != nil {
		t.Fatal(err)
	}
	set := manifest.Merge([]manifest.Batch{manifest.Collect("x", manifest.KindFile, f)})
	views, asked := newObjectViews(), 0
	views.binding = func(o *manifest.Objects, c *v1.PersistentVolumeClaim) (manifest.Claim, string) {
		asked++
		return o.Binding(c)
	}
	before := views.of(set)
	if asked != n || before.Volumes[0].Object.(*v1.PersistentVolume).Status.Phase != v1.VolumeBound {
		t.Errorf("%d claims were looked up %d times: %+v", n, asked, before.Volumes[0].Object)
	}
	o := set.Objects["x"]
	o.ConfigMaps = map[types.NamespacedName]*v1.ConfigMap{{Namespace: "default", Name: "a"}: {ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}}
	after := views.of(&manifest.Set{Objects: map[string]manifest.Objects{"x": o}})
	if !slices.Equal(before.Claims, after.Claims) || !slices.Equal(before.Volumes, after.Volumes) {
		t.Error("what is as it was has another pointer")
	}
	if before.ConfigMaps[0] == after.ConfigMaps[0] {
		t.Error("what is new is shown as it was")
	}
}

func decodeText(text string, o manifest.Options) (*manifest.File, error) {
	f := manifest.Decode([]byte(text), o)
	for _, p := range f.Problems {
		if p.Severity == manifest.Error {
			return nil, errors.New(p.String())
		}
	}
	return f, nil
}

// TestNodeView: the node is ready when its runtime is, and the same object while
// nothing changed.
func TestNodeView(t *testing.T) {
	cfg := &config.Config{NodeName: "n1", RootDir: t.TempDir(), MaxPods: 7, API: config.KubeletAPI{Listen: "127.0.0.1:10250"}}
	amounts := render.Resources{MilliCPU: 2000, Memory: 1 << 30}
	v := newNodeView(cfg, render.Node{HostIPs: []string{"10.0.0.1"}, Capacity: amounts, Allocatable: amounts}, "id")
	check := func(r runtime.Node, status v1.ConditionStatus, message string) *v1.Node {
		t.Helper()
		n := v.with(reconcile.Change{Node: r})
		if c := n.Status.Conditions[len(n.Status.Conditions)-1]; c.Type != v1.NodeReady || c.Status != status || c.Message != message {
			t.Errorf("got %+v", c)
		}
		return n
	}
	check(runtime.Node{}, v1.ConditionFalse, "the runtime was not reached yet")
	check(runtime.Node{Ready: true, NetworkMessage: "no CNI"}, v1.ConditionFalse, "no CNI")
	ready := runtime.Node{Name: "containerd", Version: "v2.4.2", Ready: true, NetworkReady: true}
	n := check(ready, v1.ConditionTrue, "podd runs pods")
	if check(ready, v1.ConditionTrue, "podd runs pods") != n {
		t.Error("another object of the same node")
	}
	s := n.Status
	if s.Capacity.Pods().Value() != 7 || s.Allocatable.Cpu().Value() != 2 || s.NodeInfo.ContainerRuntimeVersion != "containerd://2.4.2" || s.DaemonEndpoints.KubeletEndpoint.Port != 10250 || s.Addresses[0].Address != "10.0.0.1" {
		t.Errorf("got %+v", s)
	}
	v.latest.Store(&nodeFacts{
		pressure: map[v1.NodeConditionType]bool{v1.NodeMemoryPressure: true, v1.NodeDiskPressure: false, v1.NodePIDPressure: false},
		images:   []v1.ContainerImage{{Names: []string{"a:1"}, SizeBytes: 1}},
	})
	n2 := check(ready, v1.ConditionTrue, "podd runs pods")
	var conditions []string
	for _, c := range n2.Status.Conditions {
		conditions = append(conditions, string(c.Type)+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	if diff := cmp.Diff([]string{
		"MemoryPressure=True KubeletHasInsufficientMemory: kubelet has insufficient memory available",
		"DiskPressure=False KubeletHasNoDiskPressure: kubelet has no disk pressure",
		"PIDPressure=False KubeletHasSufficientPID: kubelet has sufficient PID available",
		"Ready=True KubeletReady: podd runs pods",
	}, conditions); diff != "" || len(n2.Status.Images) != 1 {
		t.Errorf("%d images, conditions -want +got:\n%s", len(n2.Status.Images), diff)
	}
	if was, is := n.Status.Conditions[0].LastTransitionTime, n2.Status.Conditions[3].LastTransitionTime; was != is {
		t.Errorf("Ready since %v, was since %v", is, was)
	}
	can := ready
	can.Handlers, can.SupplementalGroupsPolicy = map[string]runtime.Handler{"vm": {}, "": {UserNamespaces: true}}, true
	var handlers []string
	n3 := check(can, v1.ConditionTrue, "podd runs pods")
	for _, h := range n3.Status.RuntimeHandlers {
		handlers = append(handlers, fmt.Sprint(h.Name, *h.Features.UserNamespaces, *h.Features.RecursiveReadOnlyMounts))
	}
	if diff := cmp.Diff([]string{"true false", "vmfalse false"}, handlers); diff != "" || !*n3.Status.Features.SupplementalGroupsPolicy || n2.Status.Features != nil {
		t.Errorf("features %+v, handlers -want +got:\n%s", n3.Status.Features, diff)
	}
	if check(can, v1.ConditionTrue, "podd runs pods") != n3 {
		t.Error("another object of the same handlers")
	}
	const gpu = "example.com/gpu"
	c := reconcile.Change{Node: ready, Devices: map[v1.ResourceName]plan.Devices{gpu: {Total: 2, Served: true}}}
	c.Capacity.EphemeralStorage, c.Allocatable.EphemeralStorage = 3<<30, 2<<30
	s = v.with(c).Status
	if n := s.Capacity[gpu]; n.Value() != 2 || s.Capacity.StorageEphemeral().Value() != 3<<30 || s.Allocatable.StorageEphemeral().Value() != 2<<30 {
		t.Errorf("got %+v", s)
	}
	c.Devices = map[v1.ResourceName]plan.Devices{gpu: {Total: 1}}
	s = v.with(c).Status
	if has, left := s.Capacity[gpu], s.Allocatable[gpu]; has.Value() != 1 || left.Value() != 0 {
		t.Errorf("got %+v", s)
	}
}
