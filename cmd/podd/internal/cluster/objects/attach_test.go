package objects

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/volume/csi"
)

// fakeLimits counts the limit errors of one driver.
type fakeLimits struct{ recorded, handled int }

func (f *fakeLimits) Record(string) int  { f.recorded++; return f.recorded }
func (f *fakeLimits) Handled(string) int { return f.handled }

// TestAttachWait checks when an error of the attacher is final: after refs.AttachTimeout, and only if podd
// has updated the maximum number of volumes after the previous error.
func TestAttachWait(t *testing.T) {
	limit, broken := attachError{error: errors.New("too many"), exceedsLimit: true}, attachError{error: errors.New("broken")}
	for name, test := range map[string]struct {
		waited    time.Duration
		handled   int // result of LimitRecorder.Handled
		errs      []error
		wantFinal bool
		wantCount int
	}{
		"first error after the timeout":        {refs.AttachTimeout, 0, []error{limit}, false, 1},
		"repeated error after the timeout":     {refs.AttachTimeout, 1, []error{limit, limit}, true, 2},
		"no update":                            {refs.AttachTimeout, 0, []error{limit, limit}, false, 2},
		"no update after the previous error":   {refs.AttachTimeout, 1, []error{limit, limit, limit}, false, 3},
		"repeated error before the timeout":    {refs.AttachTimeout - time.Minute, 1, []error{limit, limit}, false, 2},
		"another error before":                 {refs.AttachTimeout, 1, []error{broken, limit}, false, 1},
		"another error last":                   {refs.AttachTimeout, 2, []error{limit, limit, broken}, false, 2},
		"request failed after repeated errors": {refs.AttachTimeout, 2, []error{limit, limit, errors.New("unreachable")}, false, 2},
		"attached":                             {refs.AttachTimeout, 2, []error{limit, limit, nil}, false, 2},
	} {
		w, limits := attachWait{startedAt: time.Now().Add(-test.waited)}, &fakeLimits{handled: test.handled}
		for _, err := range test.errs {
			w.handleError(err, refs.UniqueVolumeName("disk.example", "d1"), limits)
		}
		last, _ := errors.AsType[attachError](w.err)
		if last.isFinal != test.wantFinal || limits.recorded != test.wantCount {
			t.Errorf("%s: got final %t, %d recorded errors; want final %t, %d errors", name, last.isFinal, limits.recorded, test.wantFinal, test.wantCount)
		}
	}
}

// missingAttachment returns the published reason why the volume of PutDiskPod is not attached, or the
// zero value.
func (l *testResolver) missingAttachment() manifest.MissingObject {
	name := refs.AttachmentName(clustertest.DiskDriver, "h", "n1")
	return l.objects().Cluster.Missing[manifest.ObjectRef{Kind: "VolumeAttachment", NamespacedName: types.NamespacedName{Name: name}}]
}

// TestAttachment_OutdatedNode checks that podd does not treat a detached volume as attached while the
// cached Node still names it in volumesAttached. The cached Node is outdated until the watch reports the
// detachment.
func TestAttachment_OutdatedNode(t *testing.T) {
	runResolver(t, nil, func(l *testResolver) {
		va := &storage.VolumeAttachment{Status: storage.VolumeAttachmentStatus{Attached: true}}
		va.Name = refs.AttachmentName(clustertest.DiskDriver, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.AttachedVolumes[va.Name]; return is }
		l.reportsVolumes.Set(false)
		l.Change(func() {
			l.SetVolumesAttached(clustertest.DiskVolume)
			l.PutObject("volumeattachments", va, "ADDED")
			l.PutDiskPod()
		})
		l.Change(func() { // the Node changes, but its watch does not report the change
			n := l.Node.DeepCopy()
			l.Version++
			n.Status.VolumesAttached, n.ResourceVersion = nil, strconv.Itoa(l.Version)
			l.Node = n
		})
		l.reportsVolumes.Set(true)
		clustertest.Advance(apiserver.MaxUncachedWait)
		if missing := l.missingAttachment(); attached() || !strings.Contains(missing.Message, "not attached yet according to the node's status") {
			t.Errorf("detached, but still attached in the cached Node: got attached %t, reason %+v; want attached false, a reason that names the Node's status", attached(), missing)
		}
		l.Change(func() { l.SetVolumesAttached(clustertest.DiskVolume) })
		clustertest.Advance(apiserver.MaxUncachedWait)
		if !attached() {
			t.Errorf("attached again: got the volume not attached with reason %+v, want it attached", l.missingAttachment())
		}
	})
}

// TestAttachment_Outage checks that podd treats a volume as attached during an outage, until the
// controller detaches the volume.
func TestAttachment_Outage(t *testing.T) {
	runResolver(t, nil, func(l *testResolver) {
		va := &storage.VolumeAttachment{Status: storage.VolumeAttachmentStatus{Attached: true}}
		va.Name = refs.AttachmentName(clustertest.DiskDriver, "h", "n1")
		attached := func() bool { _, is := l.objects().Cluster.AttachedVolumes[va.Name]; return is }
		l.Change(func() {
			l.PutObject("volumeattachments", va, "ADDED")
			l.SetVolumesAttached(clustertest.DiskVolume)
			l.PutDiskPod()
		})
		clustertest.Advance(apiserver.MaxUncachedWait)
		if !attached() {
			t.Fatalf("before the outage: got the volume not attached with reason %+v, want it attached", l.missingAttachment())
		}
		l.Change(func() {
			l.Fault = func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("unreachable") }
			l.InterruptWatches()
		})
		clustertest.Advance(10 * time.Minute)
		if !attached() {
			t.Errorf("10m after the beginning of the outage: got the volume not attached with reason %+v, want it attached", l.missingAttachment())
		}
		l.nodes.Set(apiserver.Snapshot[*v1.Node]{}) // as at the start of a new connection
		clustertest.Advance(time.Minute)
		if !attached() {
			t.Errorf("new connection during the outage: got the volume not attached with reason %+v, want it attached", l.missingAttachment())
		}
		l.Change(func() { l.Fault = nil })
		clustertest.Advance(apiserver.MaxUncachedWait)
		l.Change(func() { l.SetVolumesAttached() })
		clustertest.Advance(time.Second)
		if attached() || !l.missingAttachment().WillExist {
			t.Errorf("1s after the detachment: got attached %t, reason %+v; want attached false, a reason with WillExist", attached(), l.missingAttachment())
		}
		clustertest.Advance(3 * time.Minute)
		if l.missingAttachment().WillExist {
			t.Errorf("3m after the detachment: got reason %+v, want a reason without WillExist, because podd reports only such a reason as a problem", l.missingAttachment())
		}
	})
}

// TestAttachment_NotRequired checks a driver that sets attachRequired to false. Its volumes must need
// no VolumeAttachment, and the Node's status must not name them in volumesInUse.
func TestAttachment_NotRequired(t *testing.T) {
	runResolver(t, nil, func(l *testResolver) {
		d := &storage.CSIDriver{Spec: storage.CSIDriverSpec{AttachRequired: new(false), VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent}}}
		d.Name = clustertest.DiskDriver
		l.Change(func() { l.PutObject("csidrivers", d, "ADDED"); l.PutDiskPod() })
		clustertest.Advance(time.Minute)
		if spec := l.objects().Cluster.CSIDrivers[clustertest.DiskDriver]; spec == nil || *spec.AttachRequired {
			t.Errorf("got spec %+v of the published CSIDriver, want attachRequired false", spec)
		}
		names, _ := l.volumes.Names(nil, []csi.VolumeID{{Driver: clustertest.DiskDriver, Handle: "h"}}, nil)
		if missing := l.objects().Cluster.Missing; len(names) > 0 || len(missing) > 0 {
			t.Errorf("got volumesInUse %v, missing objects %v; want no volumesInUse, no missing objects", names, missing)
		}
		if c := l.CountRequests("GET volumeattachments"); c[0] > 0 {
			t.Errorf("got %d GETs of VolumeAttachments, want none", c[0])
		}
	})
}

// addFailedDiskPod adds the pod of PutDiskPod with a volume whose attacher has failed with a code.
func (l *testResolver) addFailedDiskPod(code codes.Code) {
	va := &storage.VolumeAttachment{}
	va.Name = refs.AttachmentName(clustertest.DiskDriver, "h", "n1")
	va.Status.AttachError = &storage.VolumeError{Message: "too many", ErrorCode: new(int32(code))}
	l.Change(func() {
		l.PutObject("volumeattachments", va, "ADDED")
		l.PutDiskPod()
	})
}

// TestAttachment_BusyNode checks that podd reads the attacher's error at the usual intervals on a node
// whose status changes often.
func TestAttachment_BusyNode(t *testing.T) {
	runResolver(t, nil, func(l *testResolver) {
		l.addFailedDiskPod(codes.ResourceExhausted)
		l.CountRequests()
		for i := range 60 {
			l.Change(func() { l.SetVolumesAttached(v1.UniqueVolumeName(fmt.Sprint("kubernetes.io/csi/other.example^", i))) })
			clustertest.Advance(time.Second)
		}
		if got := l.missingAttachment(); got.Message != "AttachVolume.Attach failed: too many" {
			t.Errorf("after a minute: got reason %+v, want the attacher's error \"too many\"", got)
		}
		if c := l.CountRequests("GET volumeattachments"); c[0] < 8 || c[0] > 12 {
			t.Errorf("after a minute: got %d GETs of VolumeAttachments, want 8 to 12", c[0])
		}
	})
}

// TestAttachment_LimitAfterDetachment checks that the wait for an attachment starts again when the volume
// is detached.
func TestAttachment_LimitAfterDetachment(t *testing.T) {
	// The limit of the driver was updated after every failed attachment.
	prepare := func(l *testResolver, _ *Options) { l.limits.handled = math.MaxInt }
	runResolver(t, prepare, func(l *testResolver) {
		va := &storage.VolumeAttachment{}
		va.Name, va.Status.Attached = refs.AttachmentName(clustertest.DiskDriver, "h", "n1"), true
		l.Change(func() {
			l.SetVolumesAttached(clustertest.DiskVolume)
			l.PutObject("volumeattachments", va, "ADDED")
			l.PutDiskPod()
		})
		clustertest.Advance(time.Second)
		if got := l.missingAttachment(); got != (manifest.MissingObject{}) {
			t.Fatalf("attached volume: got reason %+v, want none", got)
		}
		clustertest.Advance(refs.AttachTimeout + time.Second)
		l.Change(func() {
			l.SetVolumesAttached()
			failed := va.DeepCopy()
			failed.Status = storage.VolumeAttachmentStatus{AttachError: &storage.VolumeError{Message: "too many", ErrorCode: new(int32(codes.ResourceExhausted))}}
			l.PutObject("volumeattachments", failed, "MODIFIED")
		})
		if got := l.missingAttachment(); !got.WillExist {
			t.Errorf("just after the detachment: got reason %+v, want one with WillExist", got)
		}
		want := manifest.MissingObject{Message: "AttachVolume.Attach failed: too many"}
		clustertest.Advance(refs.AttachTimeout - time.Second)
		if got := l.missingAttachment(); got != want {
			t.Errorf("shortly before the end of the wait: got reason %+v, want %+v", got, want)
		}
		want.ExceedsAttachLimit = true
		clustertest.Advance(2 * time.Second)
		if got := l.missingAttachment(); got != want {
			t.Errorf("after the wait: got reason %+v, want %+v", got, want)
		}
	})
}

// TestDiskAttachment checks that podd treats an iSCSI volume as attached when volumesInUse and
// volumesAttached of the Node's status name it, and at once if no controller attaches volumes.
func TestDiskAttachment(t *testing.T) {
	const name = v1.UniqueVolumeName("kubernetes.io/iscsi/192.0.2.1:iqn.2001-04.com.example:disk:1")
	ref := manifest.ObjectRef{Kind: manifest.AttachmentKind, NamespacedName: types.NamespacedName{Name: string(name)}}
	for test, usesController := range map[string]bool{"with a controller": true, "without a controller": false} {
		t.Run(test, func(t *testing.T) {
			runResolver(t, func(_ *testResolver, o *Options) { o.EnableControllerAttachDetach = usesController }, func(l *testResolver) {
				check := func(when string, wantAttached bool, wantReason string) {
					t.Helper()
					clustertest.Advance(time.Minute)
					c := l.objects().Cluster
					_, isAttached := c.AttachedVolumes[ref.Name]
					if reason := c.Missing[ref].Message; isAttached != wantAttached || !strings.Contains(reason, wantReason) || wantReason == "" && reason != "" {
						t.Errorf("%s: got attached %t, reason %q; want attached %t, reason %q", when, isAttached, reason, wantAttached, wantReason)
					}
				}
				pod := clustertest.NewPodWithVolumes("a", v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "192.0.2.1", IQN: "iqn.2001-04.com.example:disk", Lun: 1}})
				l.reportsVolumes.Set(false)
				l.Change(func() { l.PutPod(pod, "ADDED"); l.SetVolumesAttached(name) })
				if !usesController {
					check("without a controller", true, "")
					return
				}
				check("attached, but not in volumesInUse", false, "has not been added to the list of VolumesInUse")
				l.reportsVolumes.Set(true)
				l.Change(func() { l.SetVolumesAttached() })
				check("in volumesInUse, but not attached", false, "is not attached yet according to the node's status")
				l.Change(func() { l.SetVolumesAttached(name) })
				check("attached", true, "")
				if n := l.CountRequests("GET volumeattachments")[0]; n != 0 {
					t.Errorf("got %d GETs of VolumeAttachments, want none, because iSCSI volumes have none", n)
				}
				l.Change(func() { l.SetVolumesAttached() })
				check("detached", false, "is not attached yet according to the node's status")
			})
		})
	}
}
