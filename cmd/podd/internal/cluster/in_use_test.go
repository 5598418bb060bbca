package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// TestDiskAttachment checks that podd treats an iSCSI volume as attached when volumesInUse and
// volumesAttached of the Node's status name it, and at once if no controller attaches volumes.
func TestDiskAttachment(t *testing.T) {
	const name = v1.UniqueVolumeName("kubernetes.io/iscsi/192.0.2.1:iqn.2001-04.com.example:disk:1")
	ref := manifest.ObjectRef{Kind: manifest.AttachmentKind, NamespacedName: types.NamespacedName{Name: string(name)}}
	for test, usesController := range map[string]bool{"with a controller": true, "without a controller": false} {
		t.Run(test, func(t *testing.T) {
			runNode(t, func(_ *testNode, o *Options) { o.Node.EnableControllerAttachDetach = usesController }, func(l *testNode) {
				check := func(when string, wantAttached bool, wantReason string) {
					t.Helper()
					l.advance(time.Minute)
					c := l.objects().Cluster
					_, isAttached := c.AttachedVolumes[ref.Name]
					if reason := c.Missing[ref].Message; isAttached != wantAttached || !strings.Contains(reason, wantReason) || wantReason == "" && reason != "" {
						t.Errorf("%s: got attached %t, reason %q; want attached %t, reason %q", when, isAttached, reason, wantAttached, wantReason)
					}
				}
				pod := newPodWithVolumes("a", v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "192.0.2.1", IQN: "iqn.2001-04.com.example:disk", Lun: 1}})
				pod.Spec.NodeName = "n1"
				l.change(func() { l.putPod(pod, "ADDED"); l.failStatusPatches(usesController); l.setVolumesAttached(name) })
				if !usesController {
					check("without a controller", true, "")
					return
				}
				check("attached, but not in volumesInUse", false, "has not been added to the list of VolumesInUse")
				l.change(func() { l.failStatusPatches(false); l.setVolumesAttached() })
				check("in volumesInUse, but not attached", false, "is not attached yet according to the node's status")
				l.change(func() { l.setVolumesAttached(name) })
				check("attached", true, "")
				if n := l.countRequests("GET volumeattachments")[0]; n != 0 {
					t.Errorf("got %d GETs of VolumeAttachments, want none, because iSCSI volumes have none", n)
				}
				l.change(func() { l.setVolumesAttached() })
				check("detached", false, "is not attached yet according to the node's status")
			})
		})
	}
}

// TestDisksInUse checks that volumesInUse names iSCSI and Fibre Channel volumes as long as a bound pod
// uses them or they are on this node, and keeps their names if podd cannot read them.
func TestDisksInUse(t *testing.T) {
	const iscsi, fc = v1.UniqueVolumeName("kubernetes.io/iscsi/192.0.2.1:iqn.2001-04.com.example:disk:1"), v1.UniqueVolumeName("kubernetes.io/fc/[w1]")
	var onNode []v1.UniqueVolumeName // guarded by mu of the fakeAPI
	var failure error
	prepare := func(l *testNode, o *Options) {
		o.Node.EnableControllerAttachDetach = true
		o.Node.DisksInUse = func() (all []v1.UniqueVolumeName, err error) {
			l.fakeAPI.mu.Lock()
			defer l.fakeAPI.mu.Unlock()
			return slices.Clone(onNode), failure
		}
	}
	runNode(t, prepare, func(l *testNode) {
		check := func(when string, want ...v1.UniqueVolumeName) {
			t.Helper()
			l.advance(15 * time.Second)
			if got := l.storedNode().Status.VolumesInUse; !slices.Equal(got, want) {
				t.Errorf("%s: got volumesInUse %v, want %v", when, got, want)
			}
		}
		pod := newPodWithVolumes("a", claimVolume("data"), v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "192.0.2.1", IQN: "iqn.2001-04.com.example:disk", Lun: 1}})
		pod.Spec.NodeName = "n1"
		l.change(func() {
			claim, volume := &v1.PersistentVolumeClaim{ObjectMeta: metaOf("data")}, &v1.PersistentVolume{}
			claim.UID, claim.Status.Phase, claim.Spec.VolumeName = "c1", v1.ClaimBound, "pv1"
			volume.Name, volume.Spec.ClaimRef = "pv1", &v1.ObjectReference{Namespace: "default", Name: "data", UID: "c1"}
			volume.Spec.FC = &v1.FCVolumeSource{WWIDs: []string{"w1"}}
			l.putObject("persistentvolumes", volume, "ADDED")
			l.putObject("persistentvolumeclaims", claim, "ADDED")
			l.putPod(pod, "ADDED")
		})
		check("bound pod", fc, iscsi)
		l.change(func() { onNode = []v1.UniqueVolumeName{iscsi}; l.putPod(pod, "DELETED") })
		check("pod deleted, one volume on this node", iscsi)
		l.change(func() { onNode, failure = nil, errors.New("broken disk") })
		check("volumes on this node unknown", iscsi)
		l.change(func() { onNode = []v1.UniqueVolumeName{fc} })
		check("one volume on this node, others unknown", fc, iscsi)
		l.change(func() { onNode = nil })
		l.change(func() { failure = nil })
		check("no volume on this node")
	})
}
