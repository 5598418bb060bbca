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
		hash    string
		evicted bool
	}{{"u", "v1:a", true}, {"another", "v1:a", false}, {"u", "v1:before", false}} {
		in.Evict = &Evict{UID: test.uid, Hash: test.hash, Message: "too big"}
		d := Next(in)
		if got := d.Finished != nil && d.Finished.Failed && d.Finished.Reason == "Evicted"; got != test.evicted {
			t.Errorf("evicting uid %q, hash %q: evicted %v, want %v:\n%v", test.uid, test.hash, got, test.evicted, d)
		}
		if got := d.Phase == PhaseWindDown && d.Problem; got != test.evicted {
			t.Errorf("evicting uid %q, hash %q: winds down with a problem %v, want %v:\n%v", test.uid, test.hash, got, test.evicted, d)
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
				in.Evict = &Evict{UID: "u", Hash: "v1:a", Message: "too big"}
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

// TestDeadlineInShutdown: a pod that has stopped by its deadline stays Failed for that
// when the node shuts down, so that it does not run again afterwards. One that still
// runs ends with the grace of the shutdown.
func TestDeadlineInShutdown(t *testing.T) {
	for name, test := range map[string]struct {
		active time.Duration
		runs   bool
		want   string
	}{
		"runs, in time":         {time.Minute, true, Terminated},
		"runs, is too late":     {time.Hour, true, Terminated},
		"stopped, in time":      {time.Minute, false, Terminated},
		"stopped, was too late": {time.Hour, false, DeadlineExceeded},
	} {
		in := evictable("30", "")
		in.Desired.Spec.Spec.ActiveDeadlineSeconds = new(int64(600))
		in.History.StartTime = in.Now.Add(-test.active)
		in.Evict = &Evict{UID: "u", Hash: "v1:a", Reason: Terminated, Grace: time.Second}
		if !test.runs {
			in.Observed[0].Ready = false
			in.Observed[0].Containers[0].State = runtime.Exited
		}
		if d := Next(in); d.Finished == nil || d.Finished.Reason != test.want {
			t.Errorf("%s: it ended with %+v, want %s", name, d.Finished, test.want)
		}
	}
}
