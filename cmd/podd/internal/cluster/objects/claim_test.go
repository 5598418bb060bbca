package objects

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/manifest"
	"podd/manifest/refs"
)

// TestLookup_Claim checks that podd polls a claim until the claim is bound, and then publishes its
// volume. podd must not poll the bound claim, because its volume is not a CSI volume.
func TestLookup_Claim(t *testing.T) {
	runResolver(t, nil, func(l *testResolver) {
		claim := &v1.PersistentVolumeClaim{ObjectMeta: clustertest.Meta("data")}
		claim.UID, claim.Status.Phase = "c1", v1.ClaimPending
		volume := &v1.PersistentVolume{}
		volume.Name, volume.Spec.ClaimRef = "pv1", &v1.ObjectReference{UID: "c1"}
		l.Change(func() { l.PutPod(clustertest.NewPodWithVolumes("a", clustertest.ClaimVolume("data")), "ADDED") })
		key := types.NamespacedName{Namespace: "default", Name: "data"}
		ref := manifest.ObjectRef{Kind: "PersistentVolumeClaim", NamespacedName: key}
		if got := l.objects().Cluster.Missing[ref]; got.Message != `persistentvolumeclaim "data" not found` {
			t.Errorf("before the creation of the claim: got missing object %+v, want \"not found\"", got)
		}
		l.Change(func() { l.PutObject("persistentvolumeclaims", claim, "ADDED") })
		clustertest.Advance(apiserver.MaxUncachedWait)
		if got := l.objects().Claims[key]; got == nil || got.Status.Phase != v1.ClaimPending {
			t.Errorf("after the creation of the claim: got %+v, want a pending claim", got)
		}
		claim.Spec.VolumeName, claim.Status.Phase = "pv1", v1.ClaimBound
		l.Change(func() {
			l.PutObject("persistentvolumes", volume, "ADDED")
			l.PutObject("persistentvolumeclaims", claim, "MODIFIED")
		})
		clustertest.Advance(apiserver.MaxUncachedWait)
		if o := l.objects(); o.Claims[key] == nil || refs.UnboundReason(o.Claims[key], o.Volumes[types.NamespacedName{Name: "pv1"}]) != "" {
			t.Errorf("after the binding: got objects %+v, want a bound claim and its volume", o)
		}
		l.CountRequests()
		clustertest.Advance(time.Hour)
		if n := l.CountRequests("GET persistentvolumeclaims"); n[0] != 0 {
			t.Errorf("in the hour after the binding: got %d GETs of claims, want none", n[0])
		}
	})
}

// TestLookup_InTreeVolume checks that podd translates the in-tree source of a volume to a CSI source,
// and keeps the in-tree source if the translation fails.
func TestLookup_InTreeVolume(t *testing.T) {
	for kind, want := range map[v1.AzureDataDiskKind]string{v1.AzureManagedDisk: "disk.csi.azure.com", v1.AzureSharedBlobDisk: ""} {
		runResolver(t, nil, func(l *testResolver) {
			claim, volume := &v1.PersistentVolumeClaim{ObjectMeta: clustertest.Meta("data")}, &v1.PersistentVolume{}
			claim.UID, claim.Spec.VolumeName, claim.Status.Phase = "c1", "pv1", v1.ClaimBound
			volume.Name, volume.Spec.ClaimRef = "pv1", &v1.ObjectReference{UID: "c1"}
			volume.Spec.AzureDisk = &v1.AzureDiskVolumeSource{DataDiskURI: "/subscriptions/s", Kind: &kind}
			l.Change(func() {
				l.PutObject("persistentvolumes", volume, "ADDED")
				l.PutObject("persistentvolumeclaims", claim, "ADDED")
				l.PutPod(clustertest.NewPodWithVolumes("a", clustertest.ClaimVolume("data")), "ADDED")
			})
			clustertest.Advance(apiserver.MaxUncachedWait)
			got := l.objects().Volumes[types.NamespacedName{Name: "pv1"}]
			switch {
			case got == nil, want == "" && got.Spec.AzureDisk == nil:
				t.Errorf("%s: got volume %+v, want one with the source azureDisk", kind, got)
			case want != "" && (got.Spec.CSI == nil || got.Spec.CSI.Driver != want || got.Spec.AzureDisk != nil):
				t.Errorf("%s: got source %+v, want only a CSI source of the driver %s", kind, got.Spec.PersistentVolumeSource, want)
			}
		})
	}
}
