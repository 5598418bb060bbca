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

// fakeDrivers implements Drivers.
type fakeDrivers struct {
	mu         sync.Mutex // guards all following fields
	registered []csi.Driver
	uses       []csi.VolumeID
	expansions []csi.Expansion
	changed    chan struct{}
}

// changedLocked returns a channel that the method set closes. The caller must hold mu.
func (f *fakeDrivers) changedLocked() <-chan struct{} {
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.changed
}

func (f *fakeDrivers) Registered() ([]csi.Driver, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.registered, f.changedLocked()
}

func (f *fakeDrivers) VolumesInUse() ([]csi.VolumeID, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.uses, f.changedLocked()
}

func (f *fakeDrivers) Expansions() ([]csi.Expansion, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.expansions, f.changedLocked()
}

// set calls change with mu held, and then closes the channel that the other methods have returned.
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

// withDrivers runs a test of a node with drivers.
func withDrivers(t *testing.T, drivers *fakeDrivers, test func(*testNode)) {
	runNode(t, func(_ *testNode, o *Options) { o.CSI, o.EnableControllerAttachDetach = drivers, true }, test)
}

// storedCSINode returns the CSINode in the API server, or nil.
func (l *testNode) storedCSINode() (n *storage.CSINode) {
	l.change(func() { n, _ = l.fakeAPI.objects.have["csinodes//n1"].(*storage.CSINode) })
	return n
}

// storedNode returns the Node in the API server, or nil.
func (l *testNode) storedNode() (n *v1.Node) {
	l.change(func() { n = l.node })
	return n
}

// TestRegistrar checks that drivers are added and removed, and that entries of other agents are
// kept.
func TestRegistrar(t *testing.T) {
	drivers := &fakeDrivers{}
	withDrivers(t, drivers, func(l *testNode) {
		n := l.storedCSINode()
		if n == nil || len(n.Spec.Drivers) > 0 || n.OwnerReferences[0].UID != l.node.UID {
			t.Fatalf("without drivers: got %+v, want an empty CSINode owned by the Node", n)
		}
		l.countRequests()
		l.advance(time.Hour)
		if c := l.countRequests("GET csinodes", "PUT csinodes", "POST csinodes"); c[0]+c[1]+c[2] > 0 {
			t.Errorf("without changes: got %v requests, want none", c)
		}
		l.change(func() { // an entry of an earlier podd or another agent
			other := n.DeepCopy()
			other.Spec.Drivers = []storage.CSINodeDriver{{Name: "old.example", NodeID: "x"}}
			other.Annotations = map[string]string{v1.MigratedPluginsAnnotationKey: "kubernetes.io/rbd", "a": "b"}
			l.putObject("csinodes", other, "MODIFIED")
		})
		drivers.set(func() { drivers.registered = []csi.Driver{disk} })
		l.advance(time.Second)
		want := []storage.CSINodeDriver{
			{Name: "old.example", NodeID: "x"},
			{Name: "disk.example", NodeID: "i-1", TopologyKeys: []string{"disk.example/zone"}, Allocatable: &storage.VolumeNodeResources{Count: new(int32(5))}},
		}
		if diff := cmp.Diff(want, l.storedCSINode().Spec.Drivers); diff != "" {
			t.Errorf("new driver (-want +got):\n%s", diff)
		}
		migrated := "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume"
		if diff := cmp.Diff(map[string]string{v1.MigratedPluginsAnnotationKey: migrated, "a": "b"}, l.storedCSINode().Annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		if n := l.storedNode(); n.Annotations[annotationNodeIDs] != `{"disk.example":"i-1"}` || n.Labels["disk.example/zone"] != "a" {
			t.Errorf("new driver: got annotations %v, labels %v; want the node ID i-1 and the zone a", n.Annotations, n.Labels)
		}
		drivers.set(func() { drivers.registered = nil })
		l.advance(time.Second)
		if diff := cmp.Diff(want[:1], l.storedCSINode().Spec.Drivers); diff != "" {
			t.Errorf("unregistered driver (-want +got):\n%s", diff)
		}
		if n := l.storedNode(); n.Annotations[annotationNodeIDs] != "" || n.Labels["disk.example/zone"] != "a" {
			t.Errorf("unregistered driver: got annotations %v, labels %v; want no node ID and the zone a", n.Annotations, n.Labels)
		}
	})
}

// TestRegistrar_Failures checks that an invalid driver does not affect other drivers, and that
// changes during an outage are published after the outage.
func TestRegistrar_Failures(t *testing.T) {
	drivers := &fakeDrivers{}
	withDrivers(t, drivers, func(l *testNode) {
		bad := csi.Driver{Name: "bad.example", NodeID: "i-1", Topology: map[string]string{v1.LabelHostname: "n2"}}
		drivers.set(func() { drivers.registered = []csi.Driver{bad, disk} })
		l.advance(time.Second)
		if n := l.storedCSINode(); len(n.Spec.Drivers) != 1 || n.Spec.Drivers[0].Name != disk.Name {
			t.Errorf("got drivers %+v, want only %s", n.Spec.Drivers, disk.Name)
		}
		if problems := strings.Join(l.takeProblems(), "\n"); !strings.Contains(problems, `topology value collision: CSI driver bad.example reported "kubernetes.io/hostname":"n2"`) {
			t.Errorf("got problems %q, want a topology value collision of bad.example", problems)
		}
		l.countRequests()
		l.advance(time.Hour)
		if c := l.countRequests("GET csinodes", "PUT csinodes"); c[0]+c[1] > 0 {
			t.Errorf("invalid driver: got %v requests, want none", c)
		}
		l.change(func() {
			l.fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("unreachable") }
		})
		drivers.set(func() { drivers.registered = nil })
		l.advance(10 * time.Minute)
		l.change(func() { l.fault = nil })
		l.advance(maxCachedWait)
		if n := l.storedCSINode(); len(n.Spec.Drivers) > 0 {
			t.Errorf("after an outage: got drivers %+v, want none", n.Spec.Drivers)
		}
	})
}

// diskPod returns a pod with a claim that is bound to volume h of the driver disk.
func diskPod(l *testNode) *v1.Pod {
	claim, volume := &v1.PersistentVolumeClaim{ObjectMeta: metaOf("data")}, &v1.PersistentVolume{}
	claim.UID, claim.Status.Phase, claim.Spec.VolumeName = "c1", v1.ClaimBound, "pv1"
	claim.Status.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	volume.Name, volume.Spec.ClaimRef = "pv1", &v1.ObjectReference{Namespace: "default", Name: "data", UID: "c1"}
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: disk.Name, VolumeHandle: "h"}
	volume.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	l.putObject("persistentvolumes", volume, "ADDED")
	l.putObject("persistentvolumeclaims", claim, "ADDED")
	p := newReader("a", claimVolume("data"))
	p.Spec.NodeName = "n1"
	return p
}

const diskVolume = v1.UniqueVolumeName("kubernetes.io/csi/disk.example^h")

// attach sets the attached volumes in the Node's status, as the controller does. The caller must
// hold mu of the fakeAPI.
func (l *testNode) attach(names ...v1.UniqueVolumeName) {
	n := l.node.DeepCopy()
	n.Status.VolumesAttached = nil
	for _, name := range names {
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, v1.AttachedVolume{Name: name})
	}
	l.putNode(n, "MODIFIED")
}

// missing returns the reason why the volume is not attached.
func (l *testNode) missing() manifest.MissingObject {
	name := refs.AttachmentName(disk.Name, "h", "n1")
	return l.objects().Cluster.Missing[manifest.ObjectRef{Kind: "VolumeAttachment", NamespacedName: types.NamespacedName{Name: name}}]
}

// addDiskPodUnreported adds a pod whose volume is attached already. Updates of the Node's status
// fail, so that the status does not name the volume as in use.
func (l *testNode) addDiskPodUnreported(va *storage.VolumeAttachment) {
	l.change(func() {
		l.fault = func(q *http.Request) (*http.Response, error) {
			if q.Method == "PATCH" && strings.HasSuffix(q.URL.Path, "/nodes/n1/status") {
				return nil, fmt.Errorf("response lost")
			}
			return nil, nil
		}
		l.attach(diskVolume)
		l.putObject("volumeattachments", va, "ADDED")
		l.putPod(diskPod(l), "ADDED")
	})
	l.advance(time.Second)
}

// TestAttachment checks that a volume counts as attached if the Node's status names it as in use
// and as attached, and its VolumeAttachment confirms the attachment. The volume is in use as long
// as a pod uses it or it is on this node.
func TestAttachment(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk}}
	withDrivers(t, drivers, func(l *testNode) {
		va := &storage.VolumeAttachment{}
		va.Name = refs.AttachmentName(disk.Name, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.AttachedVolumes[va.Name]; return is }
		l.addDiskPodUnreported(va)
		if missing := l.missing(); attached() || !missing.WillExist || !strings.Contains(missing.Message, "not been added to the list of VolumesInUse") {
			t.Errorf("not reported as in use: got %+v, want a reason that is not a problem yet", missing)
		}
		l.change(func() { l.fault = nil; l.attach() })
		l.advance(10 * time.Second)
		if n := l.storedNode(); len(n.Status.VolumesInUse) != 1 || n.Status.VolumesInUse[0] != diskVolume {
			t.Fatalf("VolumesInUse: got %v, want %s", n.Status.VolumesInUse, diskVolume)
		}
		if missing := l.missing(); attached() || !missing.WillExist || !strings.Contains(missing.Message, "is not attached yet") {
			t.Errorf("not attached: got %+v, want a reason that is not a problem yet", missing)
		}
		l.change(func() {
			va.Status.AttachError = &storage.VolumeError{Message: "no such disk"}
			l.putObject("volumeattachments", va, "MODIFIED")
		})
		l.advance(time.Minute)
		if missing := l.missing(); missing != (manifest.MissingObject{Message: "AttachVolume.Attach failed: no such disk"}) {
			t.Errorf("attach failed: got %+v, want the error of the attacher", missing)
		}
		l.change(func() { l.attach(diskVolume) })
		l.advance(time.Second)
		if attached() {
			t.Error("got an attached volume before the VolumeAttachment confirms the attachment")
		}
		l.change(func() {
			va.Status = storage.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"device": "x"}}
			l.putObject("volumeattachments", va, "MODIFIED")
		})
		l.advance(maxUncachedWait)
		if got := l.objects().Cluster.AttachedVolumes[va.Name]; got["device"] != "x" {
			t.Fatalf("attached: got metadata %v, reason %+v; want the metadata device=x", got, l.missing())
		}
		l.countRequests()
		l.advance(10 * time.Minute)
		if c := l.countRequests("GET volumeattachments", "GET persistentvolumeclaims", "GET persistentvolumes", "PATCH nodes"); c[0] != 0 || c[1] > 10 || c[2] != 0 || c[3] > 4 {
			t.Errorf("without changes: got %v requests, want none", c)
		}
		drivers.set(func() { drivers.uses = []csi.VolumeID{{Driver: disk.Name, Handle: "h"}} })
		l.change(func() { l.putPod(newReader("a", claimVolume("data")), "DELETED") })
		l.advance(time.Second)
		if n := l.storedNode(); len(n.Status.VolumesInUse) != 1 {
			t.Errorf("volume on this node: got VolumesInUse %v, want one volume", n.Status.VolumesInUse)
		}
		drivers.set(func() { drivers.uses = nil })
		l.advance(time.Second)
		if n := l.storedNode(); len(n.Status.VolumesInUse) != 0 {
			t.Errorf("volume removed: got VolumesInUse %v, want none", n.Status.VolumesInUse)
		}
	})
}

// TestAttachment_WatchBehind checks that a volume that is being detached does not count as
// attached if the cached Node is out of date.
func TestAttachment_WatchBehind(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk}}
	withDrivers(t, drivers, func(l *testNode) {
		va := &storage.VolumeAttachment{Status: storage.VolumeAttachmentStatus{Attached: true}}
		va.Name = refs.AttachmentName(disk.Name, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.AttachedVolumes[va.Name]; return is }
		l.addDiskPodUnreported(va)
		l.change(func() { l.fault, l.watches = nil, nil; l.attach() })
		l.advance(maxUncachedWait)
		if n := l.storedNode(); attached() || len(n.Status.VolumesInUse) != 1 {
			t.Errorf("being detached: got attached %v, VolumesInUse %v; want not attached and one volume", attached(), n.Status.VolumesInUse)
		}
		l.change(func() { l.attach(diskVolume) })
		l.advance(maxUncachedWait)
		if !attached() {
			t.Errorf("attached again: got %+v, want attached", l.missing())
		}
	})
}

// TestAttachment_Outage checks that a volume stays attached in an outage, until the controller
// detaches it.
func TestAttachment_Outage(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk}}
	withDrivers(t, drivers, func(l *testNode) {
		va := &storage.VolumeAttachment{Status: storage.VolumeAttachmentStatus{Attached: true}}
		va.Name = refs.AttachmentName(disk.Name, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.AttachedVolumes[va.Name]; return is }
		l.change(func() {
			l.putObject("volumeattachments", va, "ADDED")
			l.attach(diskVolume)
			l.putPod(diskPod(l), "ADDED")
		})
		l.advance(maxUncachedWait)
		if !attached() {
			t.Fatalf("attached: got %+v, want attached", l.missing())
		}
		l.change(func() {
			l.fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("unreachable") }
			l.interruptWatches()
		})
		l.advance(10 * time.Minute)
		if !attached() {
			t.Errorf("10m into an outage: got %+v, want the volume still attached", l.missing())
		}
		l.change(func() { l.fault = nil })
		l.advance(2 * maxUncachedWait) // the fake rejects a watch if the Node was patched since the list
		l.change(func() { l.attach() })
		l.advance(time.Second)
		if attached() || !l.missing().WillExist {
			t.Errorf("detached: got %+v, want a reason that is not a problem yet", l.missing())
		}
		l.advance(3 * time.Minute)
		if l.missing().WillExist {
			t.Errorf("3m after the detachment: got %+v, want a problem (WillExist false)", l.missing())
		}
	})
}

// TestAttachment_NotRequired checks that volumes of a driver without attach need no
// VolumeAttachment and are not reported as in use.
func TestAttachment_NotRequired(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk}, uses: []csi.VolumeID{{Driver: disk.Name, Handle: "h"}}}
	withDrivers(t, drivers, func(l *testNode) {
		d := &storage.CSIDriver{Spec: storage.CSIDriverSpec{AttachRequired: new(false), VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent}}}
		d.Name = disk.Name
		l.change(func() { l.putObject("csidrivers", d, "ADDED"); l.putPod(diskPod(l), "ADDED") })
		l.advance(time.Minute)
		if spec := l.objects().Cluster.CSIDrivers[disk.Name]; spec == nil || *spec.AttachRequired {
			t.Errorf("got driver spec %+v, want attachRequired: false", spec)
		}
		if n := l.storedNode(); len(n.Status.VolumesInUse) > 0 || len(l.objects().Cluster.Missing) > 0 {
			t.Errorf("got VolumesInUse %v, missing objects %v; want none", n.Status.VolumesInUse, l.objects().Cluster.Missing)
		}
		if c := l.countRequests("GET volumeattachments"); c[0] > 0 {
			t.Errorf("got %v requests, want none", c)
		}
	})
}

// TestReportExpansions checks that the status of a claim is updated once after the expansion of its
// volume on this node.
func TestReportExpansions(t *testing.T) {
	drivers := &fakeDrivers{}
	withDrivers(t, drivers, func(l *testNode) {
		key := types.NamespacedName{Namespace: "default", Name: "data"}
		l.change(func() {
			l.putPod(diskPod(l), "ADDED")
			other := l.fakeAPI.objects.have["persistentvolumeclaims/default/data"].(*v1.PersistentVolumeClaim).DeepCopy()
			other.Name, other.UID, other.Spec.VolumeName = "other", "c2", "pv2"
			volume := l.fakeAPI.objects.have["persistentvolumes//pv1"].(*v1.PersistentVolume).DeepCopy()
			volume.Name, volume.Spec.ClaimRef, volume.Spec.CSI.VolumeHandle = "pv2", &v1.ObjectReference{Namespace: "default", Name: "other", UID: "c2"}, "h2"
			l.putObject("persistentvolumes", volume, "ADDED")
			l.putObject("persistentvolumeclaims", other, "ADDED")
			p := newReader("b", claimVolume("other"))
			p.Spec.NodeName = "n1"
			l.putPod(p, "ADDED")
		})
		l.advance(maxUncachedWait)
		l.change(func() {
			pv := l.fakeAPI.objects.have["persistentvolumes//pv1"].(*v1.PersistentVolume).DeepCopy()
			pv.Spec.Capacity[v1.ResourceStorage] = resource.MustParse("2Gi")
			l.putObject("persistentvolumes", pv, "MODIFIED")
			c := l.fakeAPI.objects.have["persistentvolumeclaims/default/data"].(*v1.PersistentVolumeClaim).DeepCopy()
			c.Status.AllocatedResources = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
			c.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: v1.PersistentVolumeClaimNodeResizePending}
			c.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: v1.PersistentVolumeClaimFileSystemResizePending}, {Type: "Other"}}
			l.putObject("persistentvolumeclaims", c, "MODIFIED")
		})
		l.advance(claimInterval)
		if o := l.objects(); o.Claims[key].Status.AllocatedResources == nil {
			t.Fatalf("resize not observed: got %+v, want allocated resources", o.Claims[key].Status)
		}
		l.advance(time.Second)
		l.countRequests()
		drivers.set(func() {
			drivers.expansions = []csi.Expansion{{VolumeID: csi.VolumeID{Driver: disk.Name, Handle: "h"}, Volume: "pv1", Capacity: 2 << 30}}
		})
		l.advance(time.Second)
		if c := l.countRequests("GET persistentvolumeclaims"); c[0] != 2 { // the first GET finds the change; the second GET precedes the GET of the volume
			t.Errorf("one claim has grown: got %d GETs, want 2", c[0])
		}
		s := l.objects().Claims[key].Status
		if q := s.Capacity[v1.ResourceStorage]; q.String() != "2Gi" || len(s.AllocatedResourceStatuses) > 0 || len(s.Conditions) != 1 || s.Conditions[0].Type != "Other" {
			t.Errorf("got claim status %+v, want capacity 2Gi, no resource status, and only the condition Other", s)
		}
		l.countRequests()
		l.advance(time.Hour)
		if c := l.countRequests("PATCH persistentvolumeclaims"); c[0] > 0 {
			t.Errorf("got %d more patches, want none", c[0])
		}
	})
}

// TestReportExpansions_Failed checks that failed expansions are reported as the kubelet reports
// them.
func TestReportExpansions_Failed(t *testing.T) {
	drivers := &fakeDrivers{}
	withDrivers(t, drivers, func(l *testNode) {
		key := types.NamespacedName{Namespace: "default", Name: "data"}
		grow := func(requested string, step v1.ClaimResourceStatus) {
			l.change(func() {
				c := l.fakeAPI.objects.have["persistentvolumeclaims/default/data"].(*v1.PersistentVolumeClaim).DeepCopy()
				c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse(requested)}
				c.Status.AllocatedResources = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
				c.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: step}
				c.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: "Other"}}
				l.putObject("persistentvolumeclaims", c, "MODIFIED")
			})
			l.advance(claimInterval)
		}
		fail := func(f csi.ExpansionFailure) v1.PersistentVolumeClaimStatus {
			drivers.set(func() {
				drivers.expansions = []csi.Expansion{{VolumeID: csi.VolumeID{Driver: disk.Name, Handle: "h"}, Volume: "pv1", Capacity: 2 << 30, Failure: &f}}
			})
			l.advance(time.Second)
			return l.objects().Claims[key].Status
		}
		check := func(what string, s v1.PersistentVolumeClaimStatus, step v1.ClaimResourceStatus, message string) {
			t.Helper()
			if got := s.AllocatedResourceStatuses[v1.ResourceStorage]; got != step {
				t.Errorf("%s: got step %q, want %q", what, got, step)
			}
			if q := s.Capacity[v1.ResourceStorage]; q.String() != "1Gi" {
				t.Errorf("%s: got capacity %s, want 1Gi", what, q.String())
			}
			if len(s.Conditions) != 2 || s.Conditions[0].Type != v1.PersistentVolumeClaimNodeResizeError ||
				s.Conditions[0].Status != v1.ConditionTrue || s.Conditions[0].Message != message || s.Conditions[0].LastTransitionTime.IsZero() {
				t.Errorf("%s: got conditions %+v, want message %q", what, s.Conditions, message)
			}
		}
		l.change(func() { l.putPod(diskPod(l), "ADDED") })
		l.advance(maxUncachedWait)
		grow("2Gi", v1.PersistentVolumeClaimNodeResizePending)
		check("first failure", fail(csi.ExpansionFailure{Message: "busy"}), v1.PersistentVolumeClaimNodeResizePending, "busy")
		l.countRequests()
		check("second failure", fail(csi.ExpansionFailure{Message: "full", IsRepeated: true}), v1.PersistentVolumeClaimNodeResizePending, "busy")
		if c := l.countRequests("PATCH persistentvolumeclaims"); c[0] > 0 {
			t.Errorf("second failure: got %d patches, want none", c[0])
		}
		check("infeasible", fail(csi.ExpansionFailure{Message: "too large", IsRepeated: true, IsInfeasible: true}), v1.PersistentVolumeClaimNodeResizeInfeasible, "busy")
		drivers.set(func() { drivers.expansions = nil })
		grow("1Gi", v1.PersistentVolumeClaimNodeResizeInProgress)
		check("another size is requested", fail(csi.ExpansionFailure{Message: "busy"}), v1.PersistentVolumeClaimNodeResizeInProgress, "busy")
		check("second failure, another size is requested", fail(csi.ExpansionFailure{Message: "busy", IsRepeated: true}), v1.PersistentVolumeClaimNodeResizeInfeasible, "busy")
	})
}
