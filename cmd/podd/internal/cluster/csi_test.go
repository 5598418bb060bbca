package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
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
	maxVolumes int64 // for UpdateMaxVolumes
	updates    int   // number of calls of UpdateMaxVolumes
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
func (f *fakeDrivers) UpdateMaxVolumes(_ context.Context, name string) error {
	f.set(func() {
		f.updates++
		f.registered = slices.Clone(f.registered)
		for i := range f.registered {
			if f.registered[i].Name == name {
				f.registered[i].MaxVolumes = f.maxVolumes
			}
		}
	})
	return nil
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

// TestRun_InvalidDriver checks that podd reports a CSI driver that it cannot publish as a problem.
func TestRun_InvalidDriver(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{{Name: "bad.example", NodeID: "i-1", Topology: map[string]string{v1.LabelHostname: "n2"}}}}
	withDrivers(t, drivers, func(l *testNode) {
		if problems := strings.Join(l.takeProblems(), "\n"); !strings.Contains(problems, "topology value collision") {
			t.Errorf("got problems %q, want one with a topology value collision", problems)
		}
	})
}

// failStatusPatches sets whether updates of the Node's status fail. The caller must hold Mu.
func (l *testNode) failStatusPatches(fail bool) {
	l.Fault = nil
	if fail {
		l.Fault = func(q *http.Request) (*http.Response, error) {
			if q.Method == "PATCH" && strings.HasSuffix(q.URL.Path, "/nodes/n1/status") {
				return nil, fmt.Errorf("response lost")
			}
			return nil, nil
		}
	}
}

// objects returns the published objects.
func (l *testNode) objects() *manifest.Objects {
	o, _ := l.cluster.resolver.Objects()
	return &o
}

// missingAttachment returns the published reason why the volume of PutDiskPod is not attached, or the
// zero value.
func (l *testNode) missingAttachment() manifest.MissingObject {
	name := refs.AttachmentName(clustertest.DiskDriver, "h", "n1")
	return l.objects().Cluster.Missing[manifest.ObjectRef{Kind: "VolumeAttachment", NamespacedName: types.NamespacedName{Name: name}}]
}

// addAttachedDiskPod adds the pod of PutDiskPod with a volume that is already attached. It makes updates
// of the Node's status fail until the test clears l.Fault, so that the status does not name the
// volume in volumesInUse.
func (l *testNode) addAttachedDiskPod(va *storage.VolumeAttachment) {
	l.Change(func() {
		l.failStatusPatches(true)
		l.SetVolumesAttached(clustertest.DiskVolume)
		l.PutObject("volumeattachments", va, "ADDED")
		l.PutDiskPod()
	})
	clustertest.Advance(time.Second)
}

// TestAttachment checks that podd treats a volume as attached if three conditions are met: the
// Node's status names the volume in volumesInUse and in volumesAttached, and the VolumeAttachment
// confirms the attachment. volumesInUse must name the volume until no pod uses the volume and the volume
// was removed from this node.
func TestAttachment(t *testing.T) {
	drivers := &fakeDrivers{registered: []csi.Driver{disk}}
	withDrivers(t, drivers, func(l *testNode) {
		va := &storage.VolumeAttachment{}
		va.Name = refs.AttachmentName(clustertest.DiskDriver, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.AttachedVolumes[va.Name]; return is }
		l.addAttachedDiskPod(va)
		if missing := l.missingAttachment(); attached() || !missing.WillExist || !strings.Contains(missing.Message, "not been added to the list of VolumesInUse") {
			t.Errorf("attached, but not in volumesInUse: got attached %t, reason %+v; want attached false, a reason with WillExist", attached(), missing)
		}
		l.Change(func() { l.Fault = nil; l.SetVolumesAttached() })
		clustertest.Advance(10 * time.Second)
		if n := l.StoredNode(); len(n.Status.VolumesInUse) != 1 || n.Status.VolumesInUse[0] != clustertest.DiskVolume {
			t.Fatalf("after an update of the Node's status: got volumesInUse %v, want [%s]", n.Status.VolumesInUse, clustertest.DiskVolume)
		}
		if missing := l.missingAttachment(); attached() || !missing.WillExist || !strings.Contains(missing.Message, "is not attached yet") {
			t.Errorf("in volumesInUse, but not attached: got attached %t, reason %+v; want attached false, a reason with WillExist", attached(), missing)
		}
		l.Change(func() {
			va.Status.AttachError = &storage.VolumeError{Message: "no such disk"}
			l.PutObject("volumeattachments", va, "MODIFIED")
		})
		clustertest.Advance(time.Minute)
		if missing := l.missingAttachment(); missing != (manifest.MissingObject{Message: "AttachVolume.Attach failed: no such disk"}) {
			t.Errorf("attach failed: got reason %+v, want only the attacher's error \"no such disk\"", missing)
		}
		l.Change(func() { l.SetVolumesAttached(clustertest.DiskVolume) })
		clustertest.Advance(time.Second)
		if attached() {
			t.Error("in volumesAttached, but not confirmed by the VolumeAttachment: got attached, want not attached")
		}
		l.Change(func() {
			va.Status = storage.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"device": "x"}}
			l.PutObject("volumeattachments", va, "MODIFIED")
		})
		clustertest.Advance(apiserver.MaxUncachedWait)
		if got := l.objects().Cluster.AttachedVolumes[va.Name]; got["device"] != "x" {
			t.Fatalf("confirmed by the VolumeAttachment: got metadata %v, reason %+v; want the metadata device=x", got, l.missingAttachment())
		}
		l.CountRequests()
		clustertest.Advance(10 * time.Minute)
		if c := l.CountRequests("GET volumeattachments", "GET persistentvolumeclaims", "GET persistentvolumes", "PATCH nodes"); c[0] != 0 || c[1] > 10 || c[2] != 0 || c[3] > 4 {
			t.Errorf("ten minutes without changes: got %d GETs of VolumeAttachments, %d GETs of claims, %d GETs of volumes, %d patches of the Node; want no GETs of VolumeAttachments and volumes, at most 10 GETs of claims, at most 4 patches", c[0], c[1], c[2], c[3])
		}
		drivers.set(func() { drivers.inUse = []csi.VolumeID{{Driver: clustertest.DiskDriver, Handle: "h"}} })
		l.Change(func() { l.PutPod(clustertest.NewPodWithVolumes("a", clustertest.ClaimVolume("data")), "DELETED") })
		clustertest.Advance(time.Second)
		if n := l.StoredNode(); len(n.Status.VolumesInUse) != 1 {
			t.Errorf("pod deleted, volume still on this node: got volumesInUse %v, want one volume", n.Status.VolumesInUse)
		}
		drivers.set(func() { drivers.inUse = nil })
		clustertest.Advance(time.Second)
		if n := l.StoredNode(); len(n.Status.VolumesInUse) != 0 {
			t.Errorf("volume removed from this node: got volumesInUse %v, want none", n.Status.VolumesInUse)
		}
	})
}

// TestReportExpansions checks that podd updates the status of a claim once, after the expansion of
// the volume on this node, and does not read other claims because of the expansion.
func TestReportExpansions(t *testing.T) {
	drivers := &fakeDrivers{}
	withDrivers(t, drivers, func(l *testNode) {
		key := types.NamespacedName{Namespace: "default", Name: "data"}
		l.Change(func() {
			l.PutDiskPod()
			other := l.Objects["persistentvolumeclaims/default/data"].(*v1.PersistentVolumeClaim).DeepCopy()
			other.Name, other.UID, other.Spec.VolumeName = "other", "c2", "pv2"
			volume := l.Objects["persistentvolumes//pv1"].(*v1.PersistentVolume).DeepCopy()
			volume.Name, volume.Spec.ClaimRef, volume.Spec.CSI.VolumeHandle = "pv2", &v1.ObjectReference{Namespace: "default", Name: "other", UID: "c2"}, "h2"
			l.PutObject("persistentvolumes", volume, "ADDED")
			l.PutObject("persistentvolumeclaims", other, "ADDED")
			p := clustertest.NewPodWithVolumes("b", clustertest.ClaimVolume("other"))
			l.PutPod(p, "ADDED")
		})
		clustertest.Advance(apiserver.MaxUncachedWait)
		l.Change(func() {
			pv := l.Objects["persistentvolumes//pv1"].(*v1.PersistentVolume).DeepCopy()
			pv.Spec.Capacity[v1.ResourceStorage] = resource.MustParse("2Gi")
			l.PutObject("persistentvolumes", pv, "MODIFIED")
			c := l.Objects["persistentvolumeclaims/default/data"].(*v1.PersistentVolumeClaim).DeepCopy()
			c.Status.AllocatedResources = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
			c.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: v1.PersistentVolumeClaimNodeResizePending}
			c.Status.Conditions = []v1.PersistentVolumeClaimCondition{{Type: v1.PersistentVolumeClaimFileSystemResizePending}, {Type: "Other"}}
			l.PutObject("persistentvolumeclaims", c, "MODIFIED")
		})
		clustertest.Advance(90 * time.Second) // podd reads a bound claim at this interval
		if o := l.objects(); o.Claims[key].Status.AllocatedResources == nil {
			t.Fatalf("before the expansion: got claim status %+v, want one with allocatedResources", o.Claims[key].Status)
		}
		clustertest.Advance(time.Second)
		l.CountRequests()
		drivers.set(func() {
			drivers.expansions = []csi.Expansion{{VolumeID: csi.VolumeID{Driver: clustertest.DiskDriver, Handle: "h"}, Volume: "pv1", Capacity: 2 << 30}}
		})
		clustertest.Advance(time.Second)
		if c := l.CountRequests("GET persistentvolumeclaims"); c[0] != 2 { // the first GET notices the patched claim; the second GET starts a lookup of claim and volume
			t.Errorf("after the expansion of one volume: got %d GETs of claims, want 2", c[0])
		}
		s := l.objects().Claims[key].Status
		if q := s.Capacity[v1.ResourceStorage]; q.String() != "2Gi" || len(s.AllocatedResourceStatuses) > 0 || len(s.Conditions) != 1 || s.Conditions[0].Type != "Other" {
			t.Errorf("after the expansion: got claim status %+v, want capacity 2Gi, no allocatedResourceStatuses, and only the condition Other", s)
		}
		l.CountRequests()
		clustertest.Advance(time.Hour)
		if c := l.CountRequests("PATCH persistentvolumeclaims"); c[0] > 0 {
			t.Errorf("in the hour after the update: got %d more patches of claims, want none", c[0])
		}
	})
}

// putDriver stores a CSIDriver of the driver disk. A period of 0 means that the CSIDriver has no
// nodeAllocatableUpdatePeriodSeconds.
func (l *testNode) putDriver(period int64, event string) {
	d := &storage.CSIDriver{Spec: storage.CSIDriverSpec{VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent}}}
	d.Name = clustertest.DiskDriver
	if period > 0 {
		d.Spec.NodeAllocatableUpdatePeriodSeconds = new(period)
	}
	l.Change(func() { l.PutObject("csidrivers", d, event) })
}

// publishedLimit returns the maximum number of volumes of the driver disk in the CSINode; 0 if there is
// none.
func (l *testNode) publishedLimit() int32 {
	n := l.StoredCSINode()
	if n == nil || len(n.Spec.Drivers) != 1 || n.Spec.Drivers[0].Allocatable == nil {
		return 0
	}
	return *n.Spec.Drivers[0].Allocatable.Count
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
				clustertest.Advance(20 * time.Second)
				want := manifest.MissingObject{Message: "AttachVolume.Attach failed: too many"}
				if got := l.missingAttachment(); got != want {
					t.Errorf("before refs.AttachTimeout: got reason %+v, want %+v", got, want)
				}
				updates := drivers.takeUpdates()
				if limit := l.publishedLimit(); updates > 0 != test.isLimit || limit == 1 != test.isLimit {
					t.Errorf("after the first error: got %d updates, limit %d in the CSINode; want updates %t", updates, limit, test.isLimit)
				}
				clustertest.Advance(refs.AttachTimeout - 30*time.Second)
				if got := l.missingAttachment(); got != want {
					t.Errorf("shortly before refs.AttachTimeout: got reason %+v, want %+v", got, want)
				}
				clustertest.Advance(20 * time.Second)
				want.ExceedsAttachLimit = test.isLimit
				if got := l.missingAttachment(); got != want {
					t.Errorf("after refs.AttachTimeout: got reason %+v, want %+v", got, want)
				}
				drivers.takeUpdates()
				l.Change(func() { l.PutPod(clustertest.NewPodWithVolumes("a", clustertest.ClaimVolume("data")), "DELETED") })
				l.putDriver(test.period*2, "MODIFIED")
				clustertest.Advance(10 * time.Minute)
				if n := drivers.takeUpdates(); n > 0 {
					t.Errorf("after the deletion of the pod and a change of the period: got %d updates, want none", n)
				}
			})
		})
	}
}

// addFailedDiskPod adds the pod of PutDiskPod with a volume whose attacher has failed with a code.
func (l *testNode) addFailedDiskPod(code codes.Code) {
	va := &storage.VolumeAttachment{}
	va.Name = refs.AttachmentName(clustertest.DiskDriver, "h", "n1")
	va.Status.AttachError = &storage.VolumeError{Message: "too many", ErrorCode: new(int32(code))}
	l.Change(func() {
		l.PutObject("volumeattachments", va, "ADDED")
		l.PutDiskPod()
	})
}
