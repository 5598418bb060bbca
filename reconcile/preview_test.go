package reconcile_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/merge"
	"podd/reconcile"
	"podd/reconcile/admission"
	"podd/reconcile/journal"
	"podd/reconcile/plan"
	"podd/runtime"
)

// TestPreview_ClusterNotQueried checks that the plan for a pod of a file counts the running pods of
// a cluster that is not queried, and does not stop them. Without a cluster these pods are stopped,
// and the pod of the file waits until they have stopped.
func TestPreview_ClusterNotQueried(t *testing.T) {
	static := pod(t, "static", "containers: [{name: app, image: web:1, resources: {requests: {cpu: 500m}}}]")
	one := types.NamespacedName{Namespace: "default", Name: "one"}
	runs := &runtime.Pod{Key: one, Incarnations: []runtime.Incarnation{{Sandbox: runtime.Sandbox{
		ID: "s1", UID: "uid-one", Ready: true, CreatedAt: time.Unix(1_700_000_000, 0),
		Annotations: map[string]string{manifest.AnnotationConfigSource: manifest.KindAPI, runtime.AnnotationSize: "cpu=1/1 memory=/"},
	}}}}
	for name, c := range map[string]struct {
		kinds       map[string]string
		limits      admission.Limits
		first, stay bool
	}{
		"places":     {map[string]string{source: manifest.KindFile, clusterSource: manifest.KindAPI}, admission.Limits{MaxPods: 1}, true, true},
		"amounts":    {map[string]string{source: manifest.KindFile, clusterSource: manifest.KindAPI}, admission.Limits{Allocatable: admission.Amounts{"cpu": 1000}}, true, true},
		"no cluster": {map[string]string{source: manifest.KindFile}, admission.Limits{MaxPods: 1}, false, false},
	} {
		planned, err := reconcile.Preview(reconcile.PreviewInput{
			Set:      merge.Batches([]manifest.Batch{{Source: source, Kind: manifest.KindFile, Pods: []*manifest.Pod{static}, IsComplete: true}}),
			Observed: runtime.Snapshot{Pods: map[types.NamespacedName]*runtime.Pod{one: runs}, IsComplete: true},
			Node:     runtime.Node{Reachable: true, Ready: true, NetworkReady: true},
			Journals: journal.Store{Root: filepath.Join(t.TempDir(), "pods")},
			Limits:   c.limits, SourceKinds: c.kinds, MaxBackoff: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range planned {
			acts := len(p.Decision.Actions) > 0
			switch {
			case p.Key == one && acts == c.stay, p.Key == static.Key && acts != c.first:
				t.Errorf("%s: decision about %s: got rule %s with actions %v, want any actions for pod static: %t, and for pod one: %t", name, p.Key, p.Decision.Rule, p.Decision.Actions, c.first, !c.stay)
			}
		}
		if len(planned) != 2 {
			t.Errorf("%s: planned pods: got %+v, want 2", name, planned)
		}
	}
}

// TestPreview_Images checks that the plan pulls an image only if it is not on the node, or if the
// pull policy is Always.
func TestPreview_Images(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		images map[string]string
		pulls  bool
	}{
		"absent":         {"IfNotPresent", nil, true},
		"present":        {"IfNotPresent", map[string]string{"web:1": "sha256:1"}, false},
		"present, never": {"Never", map[string]string{"web:1": "sha256:1"}, false},
		"always":         {"Always", map[string]string{"web:1": "sha256:1"}, true},
	} {
		web := pod(t, "web", "containers: [{name: app, image: \"web:1\", imagePullPolicy: "+c.policy+"}]")
		planned, err := reconcile.Preview(reconcile.PreviewInput{
			Set:      merge.Batches([]manifest.Batch{{Source: source, Kind: manifest.KindFile, Pods: []*manifest.Pod{web}, IsComplete: true}}),
			Observed: runtime.Snapshot{IsComplete: true}, Node: runtime.Node{Reachable: true, Ready: true, NetworkReady: true},
			Journals: journal.Store{Root: filepath.Join(t.TempDir(), "pods")}, Images: c.images,
			SourceKinds: map[string]string{source: manifest.KindFile}, MaxBackoff: time.Minute,
		})
		if err != nil || len(planned) != 1 {
			t.Fatalf("%s: got %+v, error %v, want one pod", name, planned, err)
		}
		d := planned[0].Decision
		isPull := func(a plan.Action) bool { _, ok := a.(plan.EnsureImage); return ok }
		if pulls := slices.ContainsFunc(d.Actions, isPull); pulls != c.pulls || len(d.Actions) == 0 {
			t.Errorf("%s: plan pulls the image: got %t, want %t\n%s", name, pulls, c.pulls, d)
		}
	}
}
