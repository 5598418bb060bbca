package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/csinode"
	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/volume/csi"
)

// fakeDrivers implements Drivers.
type fakeDrivers struct {
	mu         sync.Mutex // guards all following fields
	registered []csi.Driver
	inUse      []csi.VolumeID
	expansions []csi.Expansion
	changed    chan struct{}
	maxVolumes int64         // for UpdateMaxVolumes
	updateErr  error         // result of UpdateMaxVolumes
	updates    int           // number of calls of UpdateMaxVolumes
	continues  chan struct{} // UpdateMaxVolumes blocks until it is closed; nil means that UpdateMaxVolumes does not block
}

// changedLocked returns a channel that the next call of set closes. The caller must hold mu.
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
	return f.inUse, f.changedLocked()
}

func (f *fakeDrivers) Expansions() ([]csi.Expansion, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.expansions, f.changedLocked()
}

// UpdateMaxVolumes sets MaxVolumes of a driver to maxVolumes.
func (f *fakeDrivers) UpdateMaxVolumes(ctx context.Context, name string) error {
	f.mu.Lock()
	f.updates++
	continues := f.continues
	f.mu.Unlock()
	if continues != nil {
		select {
		case <-continues:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var err error
	f.set(func() {
		if err = f.updateErr; err != nil {
			return
		}
		f.registered = slices.Clone(f.registered)
		for i := range f.registered {
			if f.registered[i].Name == name {
				f.registered[i].MaxVolumes = f.maxVolumes
			}
		}
	})
	return err
}

// takeUpdates returns the number of calls of UpdateMaxVolumes since the last call of takeUpdates.
func (f *fakeDrivers) takeUpdates() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.updates
	f.updates = 0
	return n
}

// set calls change while it holds mu, and then closes the channels that Registered, VolumesInUse and
// Expansions have returned.
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

// withDrivers runs test with a node that has drivers.
func withDrivers(t *testing.T, drivers *fakeDrivers, test func(*testNode)) {
	runNode(t, func(_ *testNode, o *Options) { o.CSI, o.Node.EnableControllerAttachDetach = drivers, true }, test)
}

// storedCSINode returns the CSINode in the API server, or nil.
func (l *testNode) storedCSINode() (n *storage.CSINode) {
	l.change(func() { n, _ = l.fakeAPI.objects.stored["csinodes//n1"].(*storage.CSINode) })
	return n
}

// storedNode returns the Node in the API server, or nil.
func (l *testNode) storedNode() (n *v1.Node) {
	l.change(func() { n = l.node })
	return n
}

// TestRegistrar checks that podd adds and removes its drivers in the CSINode and the Node, and keeps
// entries that it has not written.
func TestRegistrar(t *testing.T) {
	drivers := &fakeDrivers{}
	withDrivers(t, drivers, func(l *testNode) {
		n := l.storedCSINode()
		if n == nil || len(n.Spec.Drivers) > 0 || n.OwnerReferences[0].UID != l.storedNode().UID {
			t.Fatalf("without drivers: got %+v, want an empty CSINode owned by the Node", n)
		}
		l.countRequests()
		l.advance(time.Hour)
		if c := l.countRequests("GET csinodes", "PUT csinodes", "POST csinodes"); c[0]+c[1]+c[2] > 0 {
			t.Errorf("hour without changes: got %d GETs, %d PUTs, %d POSTs of the CSINode; want none", c[0], c[1], c[2])
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
			t.Errorf("drivers in the CSINode after the registration (-want +got):\n%s", diff)
		}
		migrated := "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume"
		if diff := cmp.Diff(map[string]string{v1.MigratedPluginsAnnotationKey: migrated, "a": "b"}, l.storedCSINode().Annotations); diff != "" {
			t.Errorf("annotations of the CSINode after the registration (-want +got):\n%s", diff)
		}
		if n := l.storedNode(); n.Annotations[csinode.AnnotationNodeIDs] != `{"disk.example":"i-1"}` || n.Labels["disk.example/zone"] != "a" {
			t.Errorf("Node after the registration: got annotations %v, labels %v; want the node ID i-1 in an annotation, and the label disk.example/zone=a", n.Annotations, n.Labels)
		}
		drivers.set(func() { drivers.registered = nil })
		l.advance(time.Second)
		if diff := cmp.Diff(want[:1], l.storedCSINode().Spec.Drivers); diff != "" {
			t.Errorf("drivers in the CSINode after the end of the registration (-want +got):\n%s", diff)
		}
		if n := l.storedNode(); n.Annotations[csinode.AnnotationNodeIDs] != "" || n.Labels["disk.example/zone"] != "a" {
			t.Errorf("Node after the end of the registration: got annotations %v, labels %v; want no node ID, but still the label disk.example/zone=a", n.Annotations, n.Labels)
		}
	})
}

// TestRegistrar_Failures checks that podd reports a driver with a conflicting topology and publishes
// the remaining drivers. A change during an outage must be published after the outage.
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
			t.Errorf("got problems %q, want one that reports a topology value collision of bad.example", problems)
		}
		l.countRequests()
		l.advance(time.Hour)
		if c := l.countRequests("GET csinodes", "PUT csinodes"); c[0]+c[1] > 0 {
			t.Errorf("hour with an invalid driver: got %d GETs, %d PUTs of the CSINode; want none", c[0], c[1])
		}
		l.change(func() {
			l.fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("unreachable") }
		})
		drivers.set(func() { drivers.registered = nil })
		l.advance(10 * time.Minute)
		l.change(func() { l.fault = nil })
		l.advance(apiserver.MaxCachedWait)
		if n := l.storedCSINode(); len(n.Spec.Drivers) > 0 {
			t.Errorf("driver unregistered during an outage: got drivers %+v after the outage, want none", n.Spec.Drivers)
		}
	})
}

// diskPod stores a claim that is bound to volume h of the driver disk, and returns a pod that uses
// the claim. The caller must hold mu of the fakeAPI.
func diskPod(l *testNode) *v1.Pod {
	claim, volume := &v1.PersistentVolumeClaim{ObjectMeta: metaOf("data")}, &v1.PersistentVolume{}
	claim.UID, claim.Status.Phase, claim.Spec.VolumeName = "c1", v1.ClaimBound, "pv1"
	claim.Status.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	volume.Name, volume.Spec.ClaimRef = "pv1", &v1.ObjectReference{Namespace: "default", Name: "data", UID: "c1"}
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: disk.Name, VolumeHandle: "h"}
	volume.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	l.putObject("persistentvolumes", volume, "ADDED")
	l.putObject("persistentvolumeclaims", claim, "ADDED")
	p := newPodWithVolumes("a", claimVolume("data"))
	p.Spec.NodeName = "n1"
	return p
}

const diskVolume = v1.UniqueVolumeName("kubernetes.io/csi/disk.example^h")

// setVolumesAttached sets volumesAttached in the Node's status, as the attach/detach controller does.
// The caller must hold mu of the fakeAPI.
func (l *testNode) setVolumesAttached(names ...v1.UniqueVolumeName) {
	n := l.node.DeepCopy()
	n.Status.VolumesAttached = nil
	for _, name := range names {
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, v1.AttachedVolume{Name: name})
	}
	l.putNode(n, "MODIFIED")
}

// failStatusPatches sets whether updates of the Node's status fail. The caller must hold mu of the
// fakeAPI.
func (l *testNode) failStatusPatches(fail bool) {
	l.fault = nil
	if fail {
		l.fault = func(q *http.Request) (*http.Response, error) {
			if q.Method == "PATCH" && strings.HasSuffix(q.URL.Path, "/nodes/n1/status") {
				return nil, fmt.Errorf("response lost")
			}
			return nil, nil
		}
	}
}

// missingAttachment returns the published reason why the volume of diskPod is not attached, or the
// zero value.
func (l *testNode) missingAttachment() manifest.MissingObject {
	name := refs.AttachmentName(disk.Name, "h", "n1")
	return l.objects().Cluster.Missing[manifest.ObjectRef{Kind: "VolumeAttachment", NamespacedName: types.NamespacedName{Name: name}}]
}

// addAttachedDiskPod adds the pod of diskPod with a volume that is already attached. It makes updates
// of the Node's status fail until the test clears l.fault, so that the status does not name the
// volume in volumesInUse.
func (l *testNode) addAttachedDiskPod(va *storage.VolumeAttachment) {
	l.change(func() {
		l.failStatusPatches(true)
		l.setVolumesAttached(diskVolume)
		l.putObject("volumeattachments", va, "ADDED")
		l.putPod(diskPod(l), "ADDED")
	})
	l.advance(time.Second)
}

// TestAttachment checks that podd treats a volume as attached if three conditions are met: the
// Node's status names the volume in volumesInUse and in volumesAttached, and the VolumeAttachment
// confirms the attachment. volumesInUse must name the volume until no pod uses the volume and the volume
// was removed from this node.
func TestAttachment(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk}}
	withDrivers(t, drivers, func(l *testNode) {
		va := &storage.VolumeAttachment{}
		va.Name = refs.AttachmentName(disk.Name, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.AttachedVolumes[va.Name]; return is }
		l.addAttachedDiskPod(va)
		if missing := l.missingAttachment(); attached() || !missing.WillExist || !strings.Contains(missing.Message, "not been added to the list of VolumesInUse") {
			t.Errorf("attached, but not in volumesInUse: got attached %t, reason %+v; want attached false, a reason with WillExist", attached(), missing)
		}
		l.change(func() { l.fault = nil; l.setVolumesAttached() })
		l.advance(10 * time.Second)
		if n := l.storedNode(); len(n.Status.VolumesInUse) != 1 || n.Status.VolumesInUse[0] != diskVolume {
			t.Fatalf("after an update of the Node's status: got volumesInUse %v, want [%s]", n.Status.VolumesInUse, diskVolume)
		}
		if missing := l.missingAttachment(); attached() || !missing.WillExist || !strings.Contains(missing.Message, "is not attached yet") {
			t.Errorf("in volumesInUse, but not attached: got attached %t, reason %+v; want attached false, a reason with WillExist", attached(), missing)
		}
		l.change(func() {
			va.Status.AttachError = &storage.VolumeError{Message: "no such disk"}
			l.putObject("volumeattachments", va, "MODIFIED")
		})
		l.advance(time.Minute)
		if missing := l.missingAttachment(); missing != (manifest.MissingObject{Message: "AttachVolume.Attach failed: no such disk"}) {
			t.Errorf("attach failed: got reason %+v, want only the attacher's error \"no such disk\"", missing)
		}
		l.change(func() { l.setVolumesAttached(diskVolume) })
		l.advance(time.Second)
		if attached() {
			t.Error("in volumesAttached, but not confirmed by the VolumeAttachment: got attached, want not attached")
		}
		l.change(func() {
			va.Status = storage.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"device": "x"}}
			l.putObject("volumeattachments", va, "MODIFIED")
		})
		l.advance(apiserver.MaxUncachedWait)
		if got := l.objects().Cluster.AttachedVolumes[va.Name]; got["device"] != "x" {
			t.Fatalf("confirmed by the VolumeAttachment: got metadata %v, reason %+v; want the metadata device=x", got, l.missingAttachment())
		}
		l.countRequests()
		l.advance(10 * time.Minute)
		if c := l.countRequests("GET volumeattachments", "GET persistentvolumeclaims", "GET persistentvolumes", "PATCH nodes"); c[0] != 0 || c[1] > 10 || c[2] != 0 || c[3] > 4 {
			t.Errorf("ten minutes without changes: got %d GETs of VolumeAttachments, %d GETs of claims, %d GETs of volumes, %d patches of the Node; want no GETs of VolumeAttachments and volumes, at most 10 GETs of claims, at most 4 patches", c[0], c[1], c[2], c[3])
		}
		drivers.set(func() { drivers.inUse = []csi.VolumeID{{Driver: disk.Name, Handle: "h"}} })
		l.change(func() { l.putPod(newPodWithVolumes("a", claimVolume("data")), "DELETED") })
		l.advance(time.Second)
		if n := l.storedNode(); len(n.Status.VolumesInUse) != 1 {
			t.Errorf("pod deleted, volume still on this node: got volumesInUse %v, want one volume", n.Status.VolumesInUse)
		}
		drivers.set(func() { drivers.inUse = nil })
		l.advance(time.Second)
		if n := l.storedNode(); len(n.Status.VolumesInUse) != 0 {
			t.Errorf("volume removed from this node: got volumesInUse %v, want none", n.Status.VolumesInUse)
		}
	})
}

// TestAttachment_OutdatedNode checks that podd does not treat a detached volume as attached while the
// cached Node still names it in volumesAttached. The cached Node is outdated until the watch reports the
// detachment.
func TestAttachment_OutdatedNode(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk}}
	withDrivers(t, drivers, func(l *testNode) {
		va := &storage.VolumeAttachment{Status: storage.VolumeAttachmentStatus{Attached: true}}
		va.Name = refs.AttachmentName(disk.Name, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.AttachedVolumes[va.Name]; return is }
		l.addAttachedDiskPod(va)
		l.change(func() { l.fault, l.watches = nil, nil; l.setVolumesAttached() })
		l.advance(apiserver.MaxUncachedWait)
		if n := l.storedNode(); attached() || len(n.Status.VolumesInUse) != 1 {
			t.Errorf("detached, but still attached in the cached Node: got attached %v, volumesInUse %v; want attached false, one volume in volumesInUse", attached(), n.Status.VolumesInUse)
		}
		l.change(func() { l.setVolumesAttached(diskVolume) })
		l.advance(apiserver.MaxUncachedWait)
		if !attached() {
			t.Errorf("attached again: got the volume not attached with reason %+v, want it attached", l.missingAttachment())
		}
	})
}

// TestAttachment_Outage checks that podd treats a volume as attached during an outage, until the
// controller detaches the volume.
func TestAttachment_Outage(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk}}
	withDrivers(t, drivers, func(l *testNode) {
		va := &storage.VolumeAttachment{Status: storage.VolumeAttachmentStatus{Attached: true}}
		va.Name = refs.AttachmentName(disk.Name, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.AttachedVolumes[va.Name]; return is }
		l.change(func() {
			l.putObject("volumeattachments", va, "ADDED")
			l.setVolumesAttached(diskVolume)
			l.putPod(diskPod(l), "ADDED")
		})
		l.advance(apiserver.MaxUncachedWait)
		if !attached() {
			t.Fatalf("before the outage: got the volume not attached with reason %+v, want it attached", l.missingAttachment())
		}
		l.change(func() {
			l.fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("unreachable") }
			l.interruptWatches()
		})
		l.advance(10 * time.Minute)
		if !attached() {
			t.Errorf("10m after the beginning of the outage: got the volume not attached with reason %+v, want it attached", l.missingAttachment())
		}
		l.change(func() { l.fault = nil })
		l.advance(apiserver.MaxUncachedWait)
		l.change(func() { l.setVolumesAttached() })
		l.advance(time.Second)
		if attached() || !l.missingAttachment().WillExist {
			t.Errorf("1s after the detachment: got attached %t, reason %+v; want attached false, a reason with WillExist", attached(), l.missingAttachment())
		}
		l.advance(3 * time.Minute)
		if l.missingAttachment().WillExist {
			t.Errorf("3m after the detachment: got reason %+v, want a reason without WillExist, because podd reports only such a reason as a problem", l.missingAttachment())
		}
	})
}

// TestAttachment_NotRequired checks a driver that sets attachRequired to false. Its volumes must need
// no VolumeAttachment, and the Node's status must not name them in volumesInUse.
func TestAttachment_NotRequired(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk}, inUse: []csi.VolumeID{{Driver: disk.Name, Handle: "h"}}}
	withDrivers(t, drivers, func(l *testNode) {
		d := &storage.CSIDriver{Spec: storage.CSIDriverSpec{AttachRequired: new(false), VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent}}}
		d.Name = disk.Name
		l.change(func() { l.putObject("csidrivers", d, "ADDED"); l.putPod(diskPod(l), "ADDED") })
		l.advance(time.Minute)
		if spec := l.objects().Cluster.CSIDrivers[disk.Name]; spec == nil || *spec.AttachRequired {
			t.Errorf("got spec %+v of the published CSIDriver, want attachRequired false", spec)
		}
		if n := l.storedNode(); len(n.Status.VolumesInUse) > 0 || len(l.objects().Cluster.Missing) > 0 {
			t.Errorf("got volumesInUse %v, missing objects %v; want no volumesInUse, no missing objects", n.Status.VolumesInUse, l.objects().Cluster.Missing)
		}
		if c := l.countRequests("GET volumeattachments"); c[0] > 0 {
			t.Errorf("got %d GETs of VolumeAttachments, want none", c[0])
		}
	})
}

// TestReportExpansions checks that podd updates the status of a claim once, after the expansion of
// the volume on this node, and does not read other claims because of the expansion.
func TestReportExpansions(t *testing.T) {
	drivers := &fakeDrivers{}
	withDrivers(t, drivers, func(l *testNode) {
		key := types.NamespacedName{Namespace: "default", Name: "data"}
		l.change(func() {
			l.putPod(diskPod(l), "ADDED")
			other := l.fakeAPI.objects.stored["persistentvolumeclaims/default/data"].(*v1.PersistentVolumeClaim).DeepCopy()
			other.Name, other.UID, other.Spec.VolumeName = "other", "c2", "pv2"
			volume := l.fakeAPI.objects.stored["persistentvolumes//pv1"].(*v1.PersistentVolume).DeepCopy()
			volume.Name, volume.Spec.ClaimRef, volume.Spec.CSI.VolumeHandle = "pv2", &v1.ObjectReference{Namespace: "default", Name: "other", UID: "c2"}, "h2"
			l.putObject("persistentvolumes", volume, "ADDED")
			l.putObject("persistentvolumeclaims", other, "ADDED")
			p := newPodWithVolumes("b", claimVolume("other"))
			p.Spec.NodeName = "n1"
			l.putPod(p, "ADDED")
		})
		l.advance(apiserver.MaxUncachedWait)
		l.change(func() {
			pv := l.fakeAPI.objects.stored["persistentvolumes//pv1"].(*v1.PersistentVolume).DeepCopy()
			pv.Spec.Capacity[v1.ResourceStorage] = resource.MustParse("2Gi")
			l.putObject("persistentvolumes", pv, "MODIFIED")
			c := l.fakeAPI.objects.stored["persistentvolumeclaims/default/data"].(*v1.PersistentVolumeClaim).DeepCopy()
			c.Status.AllocatedResources = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
			c.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: v1.PersistentVolumeClaimNodeResizePending}
			c.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: v1.PersistentVolumeClaimFileSystemResizePending}, {Type: "Other"}}
			l.putObject("persistentvolumeclaims", c, "MODIFIED")
		})
		l.advance(90 * time.Second) // podd reads a bound claim at this interval
		if o := l.objects(); o.Claims[key].Status.AllocatedResources == nil {
			t.Fatalf("before the expansion: got claim status %+v, want one with allocatedResources", o.Claims[key].Status)
		}
		l.advance(time.Second)
		l.countRequests()
		drivers.set(func() {
			drivers.expansions = []csi.Expansion{{VolumeID: csi.VolumeID{Driver: disk.Name, Handle: "h"}, Volume: "pv1", Capacity: 2 << 30}}
		})
		l.advance(time.Second)
		if c := l.countRequests("GET persistentvolumeclaims"); c[0] != 2 { // the first GET notices the patched claim; the second GET starts a lookup of claim and volume
			t.Errorf("after the expansion of one volume: got %d GETs of claims, want 2", c[0])
		}
		s := l.objects().Claims[key].Status
		if q := s.Capacity[v1.ResourceStorage]; q.String() != "2Gi" || len(s.AllocatedResourceStatuses) > 0 || len(s.Conditions) != 1 || s.Conditions[0].Type != "Other" {
			t.Errorf("after the expansion: got claim status %+v, want capacity 2Gi, no allocatedResourceStatuses, and only the condition Other", s)
		}
		l.countRequests()
		l.advance(time.Hour)
		if c := l.countRequests("PATCH persistentvolumeclaims"); c[0] > 0 {
			t.Errorf("in the hour after the update: got %d more patches of claims, want none", c[0])
		}
	})
}

// TestReportExpansions_Failed checks that podd reports failed expansions as the kubelet does. The
// first failure adds a condition. The expansion is infeasible if the driver reports this. It is also
// infeasible if it fails repeatedly and the claim now requests a size other than that of the expansion.
func TestReportExpansions_Failed(t *testing.T) {
	drivers := &fakeDrivers{}
	withDrivers(t, drivers, func(l *testNode) {
		key := types.NamespacedName{Namespace: "default", Name: "data"}
		// resize changes the requested size and the allocatedResourceStatuses of the claim.
		resize := func(requested string, resourceStatus v1.ClaimResourceStatus) {
			l.change(func() {
				c := l.fakeAPI.objects.stored["persistentvolumeclaims/default/data"].(*v1.PersistentVolumeClaim).DeepCopy()
				c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse(requested)}
				c.Status.AllocatedResources = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
				c.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: resourceStatus}
				c.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: "Other"}}
				l.putObject("persistentvolumeclaims", c, "MODIFIED")
			})
			l.advance(90 * time.Second) // podd reads a bound claim at this interval
		}
		// fail reports a failure of the driver and returns the new status of the claim.
		fail := func(f csi.ExpansionFailure) v1.PersistentVolumeClaimStatus {
			drivers.set(func() {
				drivers.expansions = []csi.Expansion{{VolumeID: csi.VolumeID{Driver: disk.Name, Handle: "h"}, Volume: "pv1", Capacity: 2 << 30, Failure: &f}}
			})
			l.advance(time.Second)
			return l.objects().Claims[key].Status
		}
		check := func(when string, s v1.PersistentVolumeClaimStatus, resourceStatus v1.ClaimResourceStatus, message string) {
			t.Helper()
			if got := s.AllocatedResourceStatuses[v1.ResourceStorage]; got != resourceStatus {
				t.Errorf("%s: got resource status %q, want %q", when, got, resourceStatus)
			}
			if q := s.Capacity[v1.ResourceStorage]; q.String() != "1Gi" {
				t.Errorf("%s: got capacity %s, want 1Gi", when, q.String())
			}
			if len(s.Conditions) != 2 || s.Conditions[0].Type != v1.PersistentVolumeClaimNodeResizeError ||
				s.Conditions[0].Status != v1.ConditionTrue || s.Conditions[0].Message != message || s.Conditions[0].LastTransitionTime.IsZero() {
				t.Errorf("%s: got conditions %+v, want NodeResizeError with message %q and a transition time, and Other", when, s.Conditions, message)
			}
		}
		l.change(func() { l.putPod(diskPod(l), "ADDED") })
		l.advance(apiserver.MaxUncachedWait)
		resize("2Gi", v1.PersistentVolumeClaimNodeResizePending)
		check("first failure", fail(csi.ExpansionFailure{Message: "busy"}), v1.PersistentVolumeClaimNodeResizePending, "busy")
		l.countRequests()
		check("second failure", fail(csi.ExpansionFailure{Message: "full", IsRepeated: true}), v1.PersistentVolumeClaimNodeResizePending, "busy")
		if c := l.countRequests("PATCH persistentvolumeclaims"); c[0] > 0 {
			t.Errorf("second failure: got %d patches of the claim, want none", c[0])
		}
		check("infeasible", fail(csi.ExpansionFailure{Message: "too large", IsRepeated: true, IsInfeasible: true}), v1.PersistentVolumeClaimNodeResizeInfeasible, "busy")
		drivers.set(func() { drivers.expansions = nil })
		resize("1Gi", v1.PersistentVolumeClaimNodeResizeInProgress)
		check("first failure after a request for another size", fail(csi.ExpansionFailure{Message: "busy"}), v1.PersistentVolumeClaimNodeResizeInProgress, "busy")
		check("second failure after a request for another size", fail(csi.ExpansionFailure{Message: "busy", IsRepeated: true}), v1.PersistentVolumeClaimNodeResizeInfeasible, "busy")
	})
}

// putDriver stores a CSIDriver of the driver disk. A period of 0 means that the CSIDriver has no
// nodeAllocatableUpdatePeriodSeconds.
func (l *testNode) putDriver(period int64, event string) {
	d := &storage.CSIDriver{Spec: storage.CSIDriverSpec{VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent}}}
	d.Name = disk.Name
	if period > 0 {
		d.Spec.NodeAllocatableUpdatePeriodSeconds = new(period)
	}
	l.change(func() { l.putObject("csidrivers", d, event) })
}

// publishedLimit returns the maximum number of volumes of the driver disk in the CSINode; 0 if there is
// none.
func (l *testNode) publishedLimit() int32 {
	n := l.storedCSINode()
	if n == nil || len(n.Spec.Drivers) != 1 || n.Spec.Drivers[0].Allocatable == nil {
		return 0
	}
	return *n.Spec.Drivers[0].Allocatable.Count
}

// TestVolumeLimit_Period checks that podd updates the maximum number of volumes in the CSINode after each
// period of the CSIDriver, and that a change of the period takes effect. podd must request the number
// only while the driver is registered and its CSIDriver has a period.
func TestVolumeLimit_Period(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk, {Name: "other.example", NodeID: "i-1"}}, maxVolumes: 4}
	withDrivers(t, drivers, func(l *testNode) {
		drivers.set(func() { drivers.registered = drivers.registered[:1] })
		check := func(when string, d time.Duration, want int) {
			t.Helper()
			l.advance(d)
			if got := drivers.takeUpdates(); got != want {
				t.Errorf("%s, within %s: got %d updates, want %d", when, d, got, want)
			}
		}
		l.putDriver(0, "ADDED")
		check("no period", time.Hour, 0)
		l.putDriver(30, "MODIFIED")
		check("period of 30s", 29*time.Second, 0)
		if got := l.publishedLimit(); got != 5 {
			t.Errorf("before the first update: got limit %d in the CSINode, want 5", got)
		}
		check("period of 30s", 2*time.Second, 1)
		if got := l.publishedLimit(); got != 4 {
			t.Errorf("after the first update: got limit %d in the CSINode, want 4", got)
		}
		l.countRequests()
		check("period of 30s", 5*time.Minute, 10)
		if c := l.countRequests("GET csinodes", "PUT csinodes"); c[0]+c[1] > 0 {
			t.Errorf("same number of volumes: got %d GETs and %d PUTs of the CSINode, want none", c[0], c[1])
		}
		l.putDriver(10, "MODIFIED")
		check("period of 10s", 61*time.Second, 6)
		drivers.set(func() { drivers.updateErr = errors.New("broken") })
		check("failing driver", time.Minute, 6)
		drivers.set(func() { drivers.updateErr, drivers.maxVolumes = nil, 0 })
		check("driver that has recovered", 10*time.Second, 1)
		if got := l.publishedLimit(); got != 0 {
			t.Errorf("driver without a limit: got limit %d in the CSINode, want none", got)
		}
		drivers.set(func() { drivers.registered = nil })
		check("not registered", time.Hour, 0)
		drivers.set(func() { drivers.registered = []csi.Driver{disk} })
		check("registered again", 11*time.Second, 1)
		l.putDriver(10, "DELETED")
		check("CSIDriver deleted", time.Hour, 0)
	})
}

// TestAttachment_Limit checks that podd updates the maximum number of volumes when the attacher reports
// that the node has reached a limit. podd must report the exceeded limit only if the attacher has not
// succeeded within refs.AttachTimeout.
func TestAttachment_Limit(t *testing.T) {
	for name, test := range map[string]struct {
		period  int64
		code    codes.Code
		isLimit bool // podd updates the maximum number and reports the exceeded limit
	}{
		"limit exceeded":                   {3600, codes.ResourceExhausted, true},
		"limit exceeded, no update period": {0, codes.ResourceExhausted, false},
		"another error":                    {3600, codes.Internal, false},
	} {
		t.Run(name, func(t *testing.T) {
			drivers := &fakeDrivers{registered: []csi.Driver{disk}, maxVolumes: 1}
			withDrivers(t, drivers, func(l *testNode) {
				l.putDriver(test.period, "ADDED")
				l.addFailedDiskPod(test.code)
				l.advance(20 * time.Second)
				want := manifest.MissingObject{Message: "AttachVolume.Attach failed: too many"}
				if got := l.missingAttachment(); got != want {
					t.Errorf("before refs.AttachTimeout: got reason %+v, want %+v", got, want)
				}
				updates := drivers.takeUpdates()
				if limit := l.publishedLimit(); updates > 0 != test.isLimit || limit == 1 != test.isLimit {
					t.Errorf("after the first error: got %d updates, limit %d in the CSINode; want updates %t", updates, limit, test.isLimit)
				}
				l.advance(refs.AttachTimeout - 30*time.Second)
				if got := l.missingAttachment(); got != want {
					t.Errorf("shortly before refs.AttachTimeout: got reason %+v, want %+v", got, want)
				}
				l.advance(20 * time.Second)
				want.ExceedsAttachLimit = test.isLimit
				if got := l.missingAttachment(); got != want {
					t.Errorf("after refs.AttachTimeout: got reason %+v, want %+v", got, want)
				}
				drivers.takeUpdates()
				l.change(func() { l.putPod(newPodWithVolumes("a", claimVolume("data")), "DELETED") })
				l.putDriver(test.period*2, "MODIFIED")
				l.advance(10 * time.Minute)
				if n := drivers.takeUpdates(); n > 0 {
					t.Errorf("after the deletion of the pod and a change of the period: got %d updates, want none", n)
				}
			})
		})
	}
}

// addFailedDiskPod adds the pod of diskPod with a volume whose attacher has failed with a code.
func (l *testNode) addFailedDiskPod(code codes.Code) {
	va := &storage.VolumeAttachment{}
	va.Name = refs.AttachmentName(disk.Name, "h", "n1")
	va.Status.AttachError = &storage.VolumeError{Message: "too many", ErrorCode: new(int32(code))}
	l.change(func() {
		l.putObject("volumeattachments", va, "ADDED")
		l.putPod(diskPod(l), "ADDED")
	})
}

// limitChecker returns a function that checks whether podd has updated the maximum number of volumes since
// the last check, and the reason why the volume of addFailedDiskPod is not attached.
func limitChecker(t *testing.T, l *testNode, drivers *fakeDrivers) func(when string, wantUpdates, wantExceeds bool) {
	return func(when string, wantUpdates, wantExceeds bool) {
		t.Helper()
		want := manifest.MissingObject{Message: "AttachVolume.Attach failed: too many", ExceedsAttachLimit: wantExceeds}
		if n, got := drivers.takeUpdates(), l.missingAttachment(); n > 0 != wantUpdates || got != want {
			t.Errorf("%s: got %d updates, reason %+v; want updates %t, reason %+v", when, n, got, wantUpdates, want)
		}
	}
}

// TestAttachment_LimitPeriodAdded checks that podd updates the maximum number of volumes at once when a
// driver gains an update period after the attachment has failed. podd must not report the exceeded limit
// before the update, but also if the update fails.
func TestAttachment_LimitPeriodAdded(t *testing.T) {
	for name, updateErr := range map[string]error{"updated": nil, "update failed": errors.New("broken")} {
		t.Run(name, func(t *testing.T) {
			drivers := &fakeDrivers{registered: []csi.Driver{disk}, maxVolumes: 1, updateErr: updateErr}
			withDrivers(t, drivers, func(l *testNode) {
				check := limitChecker(t, l, drivers)
				l.putDriver(0, "ADDED")
				l.addFailedDiskPod(codes.ResourceExhausted)
				l.advance(refs.AttachTimeout + time.Minute)
				check("no period", false, false)
				l.putDriver(3600, "MODIFIED")
				check("period added", true, false)
				l.advance(apiserver.MaxCachedWait)
				check("after the next attempt", true, true)
				l.putDriver(0, "MODIFIED")
				l.advance(apiserver.MaxCachedWait)
				check("period removed", false, false)
			})
		})
	}
}

// TestAttachment_LimitUpdateBlocked checks that podd does not report the exceeded limit before the
// maximum number of volumes was updated, and that a change of the period during the update repeats the
// update.
func TestAttachment_LimitUpdateBlocked(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk}, maxVolumes: 1}
	withDrivers(t, drivers, func(l *testNode) {
		continues := make(chan struct{})
		drivers.set(func() { drivers.continues = continues })
		check := limitChecker(t, l, drivers)
		l.putDriver(3600, "ADDED")
		l.addFailedDiskPod(codes.ResourceExhausted)
		l.advance(refs.AttachTimeout + time.Minute)
		check("during the update", true, false)
		l.putDriver(7200, "MODIFIED")
		check("period changed during the update", true, false)
		close(continues)
		synctest.Wait()
		drivers.takeUpdates()
		l.advance(apiserver.MaxCachedWait)
		check("after the update", true, true)
	})
}

// TestAttachment_BusyNode checks that podd reads the attacher's error at the usual intervals on a node
// whose status changes often.
func TestAttachment_BusyNode(t *testing.T) {
	withDrivers(t, &fakeDrivers{registered: []csi.Driver{disk}}, func(l *testNode) {
		l.addFailedDiskPod(codes.ResourceExhausted)
		l.countRequests()
		for i := range 60 {
			l.change(func() { l.setVolumesAttached(v1.UniqueVolumeName(fmt.Sprint("kubernetes.io/csi/other.example^", i))) })
			l.advance(time.Second)
		}
		if got := l.missingAttachment(); got.Message != "AttachVolume.Attach failed: too many" {
			t.Errorf("after a minute: got reason %+v, want the attacher's error \"too many\"", got)
		}
		if c := l.countRequests("GET volumeattachments"); c[0] < 8 || c[0] > 12 {
			t.Errorf("after a minute: got %d GETs of VolumeAttachments, want 8 to 12", c[0])
		}
	})
}

// TestAttachment_LimitAfterDetachment checks that the wait for an attachment starts again when the volume
// is detached.
func TestAttachment_LimitAfterDetachment(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk}, maxVolumes: 1}
	withDrivers(t, drivers, func(l *testNode) {
		va := &storage.VolumeAttachment{}
		va.Name, va.Status.Attached = refs.AttachmentName(disk.Name, "h", "n1"), true
		l.putDriver(3600, "ADDED")
		l.change(func() {
			l.setVolumesAttached(diskVolume)
			l.putObject("volumeattachments", va, "ADDED")
			l.putPod(diskPod(l), "ADDED")
		})
		l.advance(time.Second)
		if got := l.missingAttachment(); got != (manifest.MissingObject{}) {
			t.Fatalf("attached volume: got reason %+v, want none", got)
		}
		l.advance(refs.AttachTimeout + time.Second)
		l.change(func() {
			l.setVolumesAttached()
			failed := va.DeepCopy()
			failed.Status = storage.VolumeAttachmentStatus{AttachError: &storage.VolumeError{Message: "too many", ErrorCode: new(int32(codes.ResourceExhausted))}}
			l.putObject("volumeattachments", failed, "MODIFIED")
		})
		if got := l.missingAttachment(); !got.WillExist {
			t.Errorf("just after the detachment: got reason %+v, want one with WillExist", got)
		}
		want := manifest.MissingObject{Message: "AttachVolume.Attach failed: too many"}
		l.advance(refs.AttachTimeout - time.Second)
		if got := l.missingAttachment(); got != want {
			t.Errorf("shortly before the end of the wait: got reason %+v, want %+v", got, want)
		}
		want.ExceedsAttachLimit = true
		l.advance(2 * time.Second)
		if got := l.missingAttachment(); got != want {
			t.Errorf("after the wait: got reason %+v, want %+v", got, want)
		}
	})
}
