package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/volume/csi"
)

// fakeDrivers are those of a machine, as a test has them.
type fakeDrivers struct {
	mu         sync.Mutex // guards all following fields
	registered []csi.Driver
	uses       []csi.Use
	grown      []csi.Growth
	changed    chan struct{}
}

func (f *fakeDrivers) answer() <-chan struct{} {
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.changed
}

func (f *fakeDrivers) Registered() ([]csi.Driver, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.registered, f.answer()
}

func (f *fakeDrivers) InUse() ([]csi.Use, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.uses, f.answer()
}

func (f *fakeDrivers) Grown() ([]csi.Growth, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.grown, f.answer()
}

func (f *fakeDrivers) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

var disk = csi.Driver{Name: "disk.example", NodeID: "i-1", Topology: map[string]string{"disk.example/zone": "a"}, MaxVolumes: 5}

// withDrivers is a life of a machine that has drivers.
func withDrivers(t *testing.T, has *fakeDrivers, test func(*life)) {
	alone(t, func(_ *life, o *Options) { o.CSI, o.AttachDetach = has, true }, test)
}

// csiNode is the cluster's, nil for none; the caller does not hold mu.
func (l *life) csiNode() (n *storage.CSINode) {
	l.with(func() { n, _ = l.fakeAPI.objects.have["csinodes//n1"].(*storage.CSINode) })
	return n
}

func (l *life) nodeNow() (n *v1.Node) {
	l.with(func() { n = l.node })
	return n
}

func TestCSINode(t *testing.T) {
	has := &fakeDrivers{}
	withDrivers(t, has, func(l *life) {
		n := l.csiNode()
		if n == nil || len(n.Spec.Drivers) > 0 || n.OwnerReferences[0].UID != l.node.UID {
			t.Fatalf("without drivers: got %+v", n)
		}
		l.count()
		l.after(time.Hour)
		if c := l.count("GET csinodes", "PUT csinodes", "POST csinodes"); c[0]+c[1]+c[2] > 0 {
			t.Errorf("while nothing is new: asked %v", c)
		}
		l.with(func() { // of an earlier life, or another's
			other := n.DeepCopy()
			other.Spec.Drivers = []storage.CSINodeDriver{{Name: "old.example", NodeID: "x"}}
			other.Annotations = map[string]string{v1.MigratedPluginsAnnotationKey: "kubernetes.io/aws-ebs", "a": "b"}
			l.give("csinodes", other, "MODIFIED")
		})
		has.set(func() { has.registered = []csi.Driver{disk} })
		l.after(time.Second)
		want := []storage.CSINodeDriver{
			{Name: "old.example", NodeID: "x"},
			{Name: "disk.example", NodeID: "i-1", TopologyKeys: []string{"disk.example/zone"}, Allocatable: &storage.VolumeNodeResources{Count: new(int32(5))}},
		}
		if diff := cmp.Diff(want, l.csiNode().Spec.Drivers); diff != "" {
			t.Errorf("a driver: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"a": "b"}, l.csiNode().Annotations); diff != "" {
			t.Errorf("what a kubelet migrated: -want +got:\n%s", diff)
		}
		if n := l.nodeNow(); n.Annotations[annotationNodeIDs] != `{"disk.example":"i-1"}` || n.Labels["disk.example/zone"] != "a" {
			t.Errorf("the Node: got %v, %v", n.Annotations, n.Labels)
		}
		has.set(func() { has.registered = nil })
		l.after(time.Second)
		if diff := cmp.Diff(want[:1], l.csiNode().Spec.Drivers); diff != "" {
			t.Errorf("a driver that is gone: -want +got:\n%s", diff)
		}
		if n := l.nodeNow(); n.Annotations[annotationNodeIDs] != "" || n.Labels["disk.example/zone"] != "a" {
			t.Errorf("the Node: got %v, %v", n.Annotations, n.Labels)
		}
	})
}

// One driver's trouble is none of another's, and what the cluster was not told in an
// outage it is told after it.
func TestCSINodeTroubles(t *testing.T) {
	has := &fakeDrivers{}
	withDrivers(t, has, func(l *life) {
		bad := csi.Driver{Name: "bad.example", NodeID: "i-1", Topology: map[string]string{v1.LabelHostname: "n2"}}
		has.set(func() { has.registered = []csi.Driver{bad, disk} })
		l.after(time.Second)
		if n := l.csiNode(); len(n.Spec.Drivers) != 1 || n.Spec.Drivers[0].Name != disk.Name {
			t.Errorf("got %+v", n.Spec.Drivers)
		}
		if said := strings.Join(l.heard(), "\n"); !strings.Contains(said, `topology value collision: CSI driver bad.example reported "kubernetes.io/hostname":"n2"`) {
			t.Errorf("told %q", said)
		}
		l.count()
		l.after(time.Hour)
		if c := l.count("GET csinodes", "PUT csinodes"); c[0]+c[1] > 0 {
			t.Errorf("of what cannot be: asked %v", c)
		}
		l.with(func() { l.fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("away") } })
		has.set(func() { has.registered = nil })
		l.after(10 * time.Minute)
		l.with(func() { l.fault = nil })
		l.after(maxCachedWait)
		if n := l.csiNode(); len(n.Spec.Drivers) > 0 {
			t.Errorf("after an outage: got %+v", n.Spec.Drivers)
		}
	})
}

// diskPod has a claim of the driver's volume h.
func diskPod(l *life) *v1.Pod {
	claim, volume := &v1.PersistentVolumeClaim{ObjectMeta: named("data")}, &v1.PersistentVolume{}
	claim.UID, claim.Status.Phase, claim.Spec.VolumeName = "c1", v1.ClaimBound, "pv1"
	claim.Status.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	volume.Name, volume.Spec.ClaimRef = "pv1", &v1.ObjectReference{Namespace: "default", Name: "data", UID: "c1"}
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: disk.Name, VolumeHandle: "h"}
	volume.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	l.give("persistentvolumes", volume, "ADDED")
	l.give("persistentvolumeclaims", claim, "ADDED")
	p := reader("a", claimed("data"))
	p.Spec.NodeName = "n1"
	return p
}

const diskVolume = v1.UniqueVolumeName("kubernetes.io/csi/disk.example^h")

// attach has the controller do its part, or undo it.
func (l *life) attach(names ...v1.UniqueVolumeName) {
	n := l.node.DeepCopy()
	n.Status.VolumesAttached = nil
	for _, name := range names {
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, v1.AttachedVolume{Name: name})
	}
	l.put(n, "MODIFIED")
}

func (l *life) lack() manifest.MissingObject {
	name := refs.AttachmentName(disk.Name, "h", "n1")
	return l.objects().Cluster.Missing[manifest.ObjectRef{Kind: "VolumeAttachment", NamespacedName: types.NamespacedName{Name: name}}]
}

// comesUnreported gives the node a pod whose volume was attached before, and has the
// status that would say that it is in use be lost.
func (l *life) comesUnreported(va *storage.VolumeAttachment) {
	l.with(func() {
		l.fault = func(q *http.Request) (*http.Response, error) {
			if q.Method == "PATCH" && strings.HasSuffix(q.URL.Path, "/nodes/n1/status") {
				return nil, fmt.Errorf("lost")
			}
			return nil, nil
		}
		l.attach(diskVolume)
		l.give("volumeattachments", va, "ADDED")
		l.putPod(diskPod(l), "ADDED")
	})
	l.after(time.Second)
}

// A volume is known as attached once the cluster knows that it is in use, its
// controller says that it attached it, and the VolumeAttachment does. It is in use until
// neither a pod nor this machine has it.
func TestAttachment(t *testing.T) {
	has := &fakeDrivers{registered: []csi.Driver{disk}}
	withDrivers(t, has, func(l *life) {
		va := &storage.VolumeAttachment{}
		va.Name = refs.AttachmentName(disk.Name, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.Attached[va.Name]; return is }
		l.comesUnreported(va)
		if lack := l.lack(); attached() || !lack.Soon || !strings.Contains(lack.Why, "not been added to the list of VolumesInUse") {
			t.Errorf("while its use is not reported: got %+v", lack)
		}
		l.with(func() { l.fault = nil; l.attach() })
		l.after(10 * time.Second)
		if n := l.nodeNow(); len(n.Status.VolumesInUse) != 1 || n.Status.VolumesInUse[0] != diskVolume {
			t.Fatalf("in use: got %v", n.Status.VolumesInUse)
		}
		if lack := l.lack(); attached() || !lack.Soon || !strings.Contains(lack.Why, "is not attached yet") {
			t.Errorf("before it is attached: got %+v", lack)
		}
		l.with(func() {
			va.Status.AttachError = &storage.VolumeError{Message: "no such disk"}
			l.give("volumeattachments", va, "MODIFIED")
		})
		l.after(time.Minute)
		if lack := l.lack(); lack != (manifest.MissingObject{Why: "AttachVolume.Attach failed: no such disk"}) {
			t.Errorf("when that fails: got %+v", lack)
		}
		l.with(func() { l.attach(diskVolume) })
		l.after(time.Second)
		if attached() {
			t.Error("its VolumeAttachment does not say so")
		}
		l.with(func() {
			va.Status = storage.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"device": "x"}}
			l.give("volumeattachments", va, "MODIFIED")
		})
		l.after(maxUncachedWait)
		if got := l.objects().Cluster.Attached[va.Name]; got["device"] != "x" {
			t.Fatalf("attached: got %v, lack %+v", got, l.lack())
		}
		l.count()
		l.after(10 * time.Minute)
		if c := l.count("GET volumeattachments", "GET persistentvolumeclaims", "GET persistentvolumes", "PATCH nodes"); c[0] != 0 || c[1] > 10 || c[2] != 0 || c[3] > 4 {
			t.Errorf("while nothing is new: asked %v", c)
		}
		has.set(func() { has.uses = []csi.Use{{Driver: disk.Name, Handle: "h"}} })
		gone := reader("a", claimed("data"))
		l.with(func() { l.putPod(gone, "DELETED") })
		l.after(time.Second)
		if n := l.nodeNow(); len(n.Status.VolumesInUse) != 1 {
			t.Errorf("while this machine has it: in use %v", n.Status.VolumesInUse)
		}
		has.set(func() { has.uses = nil })
		l.after(time.Second)
		if n := l.nodeNow(); len(n.Status.VolumesInUse) != 0 {
			t.Errorf("at the end: in use %v", n.Status.VolumesInUse)
		}
	})
}

// A volume that the controller has begun to detach is not taken for attached because
// the watch of the Node is behind.
func TestAttachmentBehind(t *testing.T) {
	has := &fakeDrivers{registered: []csi.Driver{disk}}
	withDrivers(t, has, func(l *life) {
		va := &storage.VolumeAttachment{Status: storage.VolumeAttachmentStatus{Attached: true}}
		va.Name = refs.AttachmentName(disk.Name, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.Attached[va.Name]; return is }
		l.comesUnreported(va)
		l.with(func() { l.fault, l.watches = nil, nil; l.attach() })
		l.after(maxUncachedWait)
		if n := l.nodeNow(); attached() || len(n.Status.VolumesInUse) != 1 {
			t.Errorf("while it is being detached: attached %v, in use %v", attached(), n.Status.VolumesInUse)
		}
		l.with(func() { l.attach(diskVolume) })
		l.after(maxUncachedWait)
		if !attached() {
			t.Errorf("attached again: got %+v", l.lack())
		}
	})
}

// What is attached stays so in an outage, and until the controller takes it away.
func TestAttachmentStays(t *testing.T) {
	has := &fakeDrivers{registered: []csi.Driver{disk}}
	withDrivers(t, has, func(l *life) {
		va := &storage.VolumeAttachment{Status: storage.VolumeAttachmentStatus{Attached: true}}
		va.Name = refs.AttachmentName(disk.Name, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.Attached[va.Name]; return is }
		l.with(func() { l.give("volumeattachments", va, "ADDED"); l.attach(diskVolume); l.putPod(diskPod(l), "ADDED") })
		l.after(maxUncachedWait)
		if !attached() {
			t.Fatalf("got %+v", l.lack())
		}
		l.with(func() {
			l.fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("away") }
			l.cut()
		})
		l.after(10 * time.Minute)
		if !attached() {
			t.Error("lost in an outage")
		}
		l.with(func() { l.fault = nil })
		l.after(2 * maxUncachedWait) // the fake refuses a watch when the node was patched since the list
		l.with(func() { l.attach() })
		l.after(time.Second)
		if attached() || !l.lack().Soon {
			t.Errorf("taken away: got %+v", l.lack())
		}
		l.after(3 * time.Minute)
		if l.lack().Soon {
			t.Error("that is no trouble after three minutes")
		}
	})
}

// Where the driver says that nothing attaches its volumes, nothing is asked of that,
// and none is in use.
func TestUnattached(t *testing.T) {
	has := &fakeDrivers{registered: []csi.Driver{disk}, uses: []csi.Use{{Driver: disk.Name, Handle: "h"}}}
	withDrivers(t, has, func(l *life) {
		d := &storage.CSIDriver{Spec: storage.CSIDriverSpec{AttachRequired: new(false), VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent}}}
		d.Name = disk.Name
		l.with(func() { l.give("csidrivers", d, "ADDED"); l.putPod(diskPod(l), "ADDED") })
		l.after(time.Minute)
		if spec := l.objects().Cluster.Drivers[disk.Name]; spec == nil || *spec.AttachRequired {
			t.Errorf("got %+v", spec)
		}
		if n := l.nodeNow(); len(n.Status.VolumesInUse) > 0 || len(l.objects().Cluster.Missing) > 0 {
			t.Errorf("in use %v, lacks %v", n.Status.VolumesInUse, l.objects().Cluster.Missing)
		}
		if c := l.count("GET volumeattachments"); c[0] > 0 {
			t.Errorf("asked %v", c)
		}
	})
}

// A claim is told of as grown when this machine has done its part, once.
func TestGrowth(t *testing.T) {
	has := &fakeDrivers{}
	withDrivers(t, has, func(l *life) {
		key := types.NamespacedName{Namespace: "default", Name: "data"}
		l.with(func() {
			l.putPod(diskPod(l), "ADDED")
			other := l.fakeAPI.objects.have["persistentvolumeclaims/default/data"].(*v1.PersistentVolumeClaim).DeepCopy()
			other.Name, other.UID, other.Spec.VolumeName = "other", "c2", "pv2"
			volume := l.fakeAPI.objects.have["persistentvolumes//pv1"].(*v1.PersistentVolume).DeepCopy()
			volume.Name, volume.Spec.ClaimRef, volume.Spec.CSI.VolumeHandle = "pv2", &v1.ObjectReference{Namespace: "default", Name: "other", UID: "c2"}, "h2"
			l.give("persistentvolumes", volume, "ADDED")
			l.give("persistentvolumeclaims", other, "ADDED")
			p := reader("b", claimed("other"))
			p.Spec.NodeName = "n1"
			l.putPod(p, "ADDED")
		})
		l.after(maxUncachedWait)
		l.with(func() {
			pv := l.fakeAPI.objects.have["persistentvolumes//pv1"].(*v1.PersistentVolume).DeepCopy()
			pv.Spec.Capacity[v1.ResourceStorage] = resource.MustParse("2Gi")
			l.give("persistentvolumes", pv, "MODIFIED")
			c := l.fakeAPI.objects.have["persistentvolumeclaims/default/data"].(*v1.PersistentVolumeClaim).DeepCopy()
			c.Status.AllocatedResources = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
			c.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: v1.PersistentVolumeClaimNodeResizePending}
			c.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: v1.PersistentVolumeClaimFileSystemResizePending}, {Type: "Other"}}
			l.give("persistentvolumeclaims", c, "MODIFIED")
		})
		l.after(claimInterval)
		if o := l.objects(); o.Claims[key].Status.AllocatedResources == nil {
			t.Fatalf("not seen: %+v", o.Claims[key].Status)
		}
		l.after(time.Second)
		l.count()
		has.set(func() {
			has.grown = []csi.Growth{{Use: csi.Use{Driver: disk.Name, Handle: "h"}, Volume: "pv1", Capacity: 2 << 30}}
		})
		l.after(time.Second)
		if c := l.count("GET persistentvolumeclaims"); c[0] != 2 { // whether it is another, and with its volume
			t.Errorf("when one claim has grown: looked at %d", c[0])
		}
		s := l.objects().Claims[key].Status
		if q := s.Capacity[v1.ResourceStorage]; q.String() != "2Gi" || len(s.AllocatedResourceStatuses) > 0 || len(s.Conditions) != 1 || s.Conditions[0].Type != "Other" {
			t.Errorf("got %+v", s)
		}
		l.count()
		l.after(time.Hour)
		if c := l.count("PATCH persistentvolumeclaims"); c[0] > 0 {
			t.Errorf("told %d times more", c[0])
		}
	})
}

// A claim is told of a growth that its driver does not do, in the kubelet's steps.
func TestGrowthFails(t *testing.T) {
	has := &fakeDrivers{}
	withDrivers(t, has, func(l *life) {
		key := types.NamespacedName{Namespace: "default", Name: "data"}
		grow := func(wanted string, step v1.ClaimResourceStatus) {
			l.with(func() {
				c := l.fakeAPI.objects.have["persistentvolumeclaims/default/data"].(*v1.PersistentVolumeClaim).DeepCopy()
				c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse(wanted)}
				c.Status.AllocatedResources = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
				c.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: step}
				c.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: "Other"}}
				l.give("persistentvolumeclaims", c, "MODIFIED")
			})
			l.after(claimInterval)
		}
		fails := func(f csi.GrowthFailure) v1.PersistentVolumeClaimStatus {
			has.set(func() {
				has.grown = []csi.Growth{{Use: csi.Use{Driver: disk.Name, Handle: "h"}, Volume: "pv1", Capacity: 2 << 30, Failed: &f}}
			})
			l.after(time.Second)
			return l.objects().Claims[key].Status
		}
		is := func(what string, s v1.PersistentVolumeClaimStatus, step v1.ClaimResourceStatus, says string) {
			t.Helper()
			if got := s.AllocatedResourceStatuses[v1.ResourceStorage]; got != step {
				t.Errorf("%s: the step is %q, not %q", what, got, step)
			}
			if q := s.Capacity[v1.ResourceStorage]; q.String() != "1Gi" {
				t.Errorf("%s: it has %s", what, q.String())
			}
			if len(s.Conditions) != 2 || s.Conditions[0].Type != v1.PersistentVolumeClaimNodeResizeError ||
				s.Conditions[0].Status != v1.ConditionTrue || s.Conditions[0].Message != says || s.Conditions[0].LastTransitionTime.IsZero() {
				t.Errorf("%s: got %+v, want %q", what, s.Conditions, says)
			}
		}
		l.with(func() { l.putPod(diskPod(l), "ADDED") })
		l.after(maxUncachedWait)
		grow("2Gi", v1.PersistentVolumeClaimNodeResizePending)
		is("at first", fails(csi.GrowthFailure{Message: "busy"}), v1.PersistentVolumeClaimNodeResizePending, "busy")
		l.count()
		is("again", fails(csi.GrowthFailure{Message: "full", Again: true}), v1.PersistentVolumeClaimNodeResizePending, "busy")
		if c := l.count("PATCH persistentvolumeclaims"); c[0] > 0 {
			t.Errorf("the same was told %d times more", c[0])
		}
		is("infeasible", fails(csi.GrowthFailure{Message: "too large", Again: true, Infeasible: true}), v1.PersistentVolumeClaimNodeResizeInfeasible, "busy")
		has.set(func() { has.grown = nil })
		grow("1Gi", v1.PersistentVolumeClaimNodeResizeInProgress)
		is("while another size is wanted", fails(csi.GrowthFailure{Message: "busy"}), v1.PersistentVolumeClaimNodeResizeInProgress, "busy")
		is("again while another size is wanted", fails(csi.GrowthFailure{Message: "busy", Again: true}), v1.PersistentVolumeClaimNodeResizeInfeasible, "busy")
	})
}
