package reconcile

import (
	"log/slog"
	"maps"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
)

// TestNewReport_IsInSource checks that a pod is in its source while it is desired or its source is deleting it,
// even if podd was started during the deletion.
func TestNewReport_IsInSource(t *testing.T) {
	pod := func(uid types.UID) *manifest.Pod {
		p := barePod("main")
		p.UID, p.Object.UID = uid, uid
		return p
	}
	desired := state.Order{Desired: pod("u")}
	deleting := state.Order{TerminatingPod: pod("u")}
	for name, test := range map[string]struct {
		orders []state.Order
		want   bool
	}{
		"desired":                           {[]state.Order{desired}, true},
		"deleted in the source":             {[]state.Order{desired, deleting}, true},
		"deleted before podd was started":   {[]state.Order{deleting}, true},
		"deletion completed":                {[]state.Order{desired, deleting, {}}, false},
		"removed from the source":           {[]state.Order{desired, {}}, false},
		"another pod deleted in the source": {[]state.Order{desired, {TerminatingPod: pod("other")}}, false},
		"manifest unknown":                  {[]state.Order{{}}, false},
	} {
		w := &worker{
			requestObservation: func(types.NamespacedName, bool) {},
			log:                slog.New(slog.DiscardHandler), actions: map[string]*runningAction{}, state: state.New(state.InitialFacts{}),
		}
		var r *state.Report
		for _, order := range test.orders {
			w.receive(&workerMessage{order: order})
			r = w.newReport(plan.Decision{})
		}
		if r.IsInSource != test.want {
			t.Errorf("%s: got %t, want %t", name, r.IsInSource, test.want)
		}
	}
}

// TestNewReport_VolumePlugins checks that the report contains the plugins of the volumes until the pod is stopped,
// because its volumes are mounted until then.
func TestNewReport_VolumePlugins(t *testing.T) {
	p := barePod("main")
	p.Object.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}}
	nfs := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{}}}}
	objects := &refs.Resolved{Claims: map[string]refs.Claim{"claim": {Volume: nfs}}}
	for name, observed := range map[string]*runtime.Pod{"running": observedPod(true, runtime.Container{ID: "a", SandboxID: "s", Name: "main", State: runtime.Running}), "not running": nil} {
		w, _ := bareWorker(p)
		w.receive(&workerMessage{order: state.Order{Desired: p, Refs: objects}})
		w.observe(observed, time.Now())
		for _, order := range []state.Order{{Desired: p, Refs: objects}, {}, {SourcesRead: true}} {
			w.receive(&workerMessage{order: order})
			if got, want := w.newReport(plan.Decision{}).VolumePlugins, map[string]string{"data": "kubernetes.io/nfs"}; !maps.Equal(got, want) {
				t.Errorf("%s, desired %t: got %v, want %v", name, order.Desired != nil, got, want)
			}
		}
	}
}

// TestVolumePlugins checks that the plugin of a claim is that of its PersistentVolume, and that volumes whose
// plugin is in the manifest are omitted.
func TestVolumePlugins(t *testing.T) {
	claim := func(name string) v1.VolumeSource {
		return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	bound := func(s v1.PersistentVolumeSource) refs.Claim {
		return refs.Claim{Volume: &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: s}}}
	}
	p := &manifest.Pod{Object: &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{
		{Name: "a", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "b", VolumeSource: claim("csi")}, {Name: "c", VolumeSource: claim("nfs")}, {Name: "d", VolumeSource: claim("dir")}, {Name: "e", VolumeSource: claim("missing")},
	}}}}
	r := &refs.Resolved{Claims: map[string]refs.Claim{
		"csi": bound(v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com"}}),
		"nfs": bound(v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{}}), "dir": {},
	}}
	want := map[string]string{"b": "kubernetes.io/csi:ebs.csi.aws.com", "c": "kubernetes.io/nfs", "d": "kubernetes.io/local-volume"}
	if got := volumePlugins(p, r); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := volumePlugins(p, nil); got != nil {
		t.Errorf("without references: got %v, want none", got)
	}
}
