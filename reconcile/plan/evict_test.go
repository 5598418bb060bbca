package plan

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// evictable is a pod that runs, with this grace and preStop hook.
func evictable(grace, preStop string) Input {
	pod := &manifest.Pod{
		Key: types.NamespacedName{Namespace: "default", Name: "big"}, UID: "u", Hash: "v1:a",
		Spec: &v1.Pod{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "app", Image: "a"}}}},
	}
	return Input{
		Desired: pod, Now: time.Unix(1000, 0),
		Node: Node{Reachable: true, Ready: true, NetworkReady: true},
		Observed: []runtime.Incarnation{{
			Sandbox: runtime.Sandbox{ID: "s", UID: "u", Ready: true, Annotations: map[string]string{
				runtime.AnnotationHash: "v1:a", runtime.AnnotationGrace: grace,
			}},
			Containers: []runtime.Container{{
				ID: "c", Name: "app", State: runtime.Running, Annotations: map[string]string{runtime.AnnotationPreStopHandler: preStop},
			}},
		}},
	}
}

// An evicted pod is ended for good, whatever its restart policy, and only the
// version that was meant.
func TestEvict(t *testing.T) {
	in := evictable("30", "")
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

// TestEvictGrace: an eviction leaves a pod one second, its hooks included, and
// the runtime's floor of two for the stop; less than that it keeps.
func TestEvictGrace(t *testing.T) {
	for name, test := range map[string]struct {
		grace, preStop string
		begun          time.Duration // the eviction was so long ago
		edited         bool
		want           string
	}{
		"at once":            {grace: "600", want: "stop app within 2s"},
		"a hook":             {grace: "600", preStop: `{"exec":{"command":["x"]}}`, want: "make the preStop hook of app within 1s"},
		"a hook is over":     {grace: "600", preStop: `{"exec":{"command":["x"]}}`, begun: time.Second, want: "stop app within 2s"},
		"a sleep":            {grace: "600", preStop: `{"sleep":{"seconds":60}}`, begun: time.Second, want: "stop app within 2s"},
		"no grace at all":    {grace: "0", want: "stop sandbox"},
		"edited meanwhile":   {grace: "600", begun: 500 * time.Millisecond, edited: true, want: "stop app within 2s"},
		"podd was restarted": {grace: "600", begun: time.Hour, want: "stop app within 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			in := evictable(test.grace, test.preStop)
			if fin := (&Finished{UID: "u", Hash: "v1:a", Size: in.Desired.PodSize(), Failed: true, Reason: Evicted, At: in.Now.Add(-test.begun)}); test.begun > 0 {
				in.History.Finished = fin
			} else {
				in.Evict = &Evict{UID: "u", Message: "too big"}
			}
			if test.edited {
				in.Desired = nil
				in.Certain = true
			}
			d := Next(in)
			var got []string
			for _, a := range d.Actions {
				text, _, _ := strings.Cut(a.String(), " (")
				got = append(got, text)
			}
			if len(got) != 1 || got[0] != test.want {
				t.Errorf("got %q, want %q\n%s", got, test.want, d)
			}
		})
	}
}
