package plan

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// An evicted pod is ended for good, whatever its restart policy, and only the
// version that was meant.
func TestEvict(t *testing.T) {
	pod := &manifest.Pod{
		Key: types.NamespacedName{Namespace: "default", Name: "big"}, UID: "u", Hash: "v1:a",
		Spec: &v1.Pod{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "app", Image: "a"}}}},
	}
	in := Input{
		Desired: pod, Now: time.Unix(1000, 0),
		Node: Node{Reachable: true, Ready: true, NetworkReady: true},
		Observed: []runtime.Incarnation{{
			Sandbox:    runtime.Sandbox{ID: "s", UID: "u", Ready: true, Annotations: map[string]string{runtime.AnnotationHash: "v1:a"}},
			Containers: []runtime.Container{{ID: "c", Name: "app", State: runtime.Running}},
		}},
	}
	for _, test := range []struct {
		uid     types.UID
		evicted bool
	}{{"u", true}, {"another", false}} {
		in.Evict = &Evict{UID: test.uid, Message: "too big"}
		d := Next(in)
		if got := d.Finished != nil && d.Finished.Failed && d.Finished.Reason == "Evicted"; got != test.evicted {
			t.Errorf("evicting uid %q: evicted %v, want %v:\n%v", test.uid, got, test.evicted, d)
		}
		if got := d.Phase == PhaseWindDown && d.Problem; got != test.evicted {
			t.Errorf("evicting uid %q: winds down with a problem %v, want %v:\n%v", test.uid, got, test.evicted, d)
		}
	}
}
