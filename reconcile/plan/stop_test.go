package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// TestStopOrder checks what is stopped next in a sandbox, and with which grace periods. A
// container is written "name kind:index state".
func TestStopOrder(t *testing.T) {
	tests := map[string]struct {
		containers []string
		grace      string        // the grace period of the sandbox; "" means the default
		elapsed    time.Duration // since the stop began
		force      bool
		want       string
	}{
		"regular containers":                 {[]string{"b container:1 Running", "a container:0 Running"}, "30", 0, false, "a 30s, b 30s"},
		"init container with regular ones":   {[]string{"a container:0 Running", "i init:0 Running"}, "30", 0, false, "a 30s, i 30s"},
		"sidecars after regular ones":        {[]string{"s sidecar:0 Running", "a container:0 Running"}, "30", 0, false, "a 30s"},
		"last sidecar first":                 {[]string{"s sidecar:0 Running", "r sidecar:2 Running", "a container:0 Exited"}, "30", 0, false, "r 30s"},
		"sidecar before the last one":        {[]string{"s sidecar:0 Running", "r sidecar:2 Exited"}, "30", 0, false, "s 30s"},
		"all after the grace period":         {[]string{"s sidecar:0 Running", "r sidecar:2 Running", "a container:0 Running"}, "30", 30 * time.Second, false, "a 2s, r 2s, s 2s"},
		"rest of the grace period":           {[]string{"a container:0 Running"}, "30", 12 * time.Second, false, "a 18s"},
		"at least two seconds":               {[]string{"a container:0 Running"}, "30", 29 * time.Second, false, "a 2s"},
		"two seconds after the grace period": {[]string{"a container:0 Running"}, "30", time.Hour, false, "a 2s"},
		"grace period of one second":         {[]string{"a container:0 Running"}, "1", time.Hour, false, "a 2s"},
		"clock jumped back":                  {[]string{"a container:0 Running"}, "30", -years, false, "a 30s"},
		"zero grace period":                  {[]string{"a container:0 Running"}, "0", 0, false, "sandbox"},
		"forced stop":                        {[]string{"a container:0 Running"}, "30", 0, true, "sandbox"},
		"default grace period":               {[]string{"a container:0 Running"}, "", 0, false, "a 30s"},
		"grace period is not a number":       {[]string{"a container:0 Running"}, "soon", 0, false, "a 30s"},
		"negative grace period":              {[]string{"a container:0 Running"}, "-5", 0, false, "a 30s"},
		"unknown state":                      {[]string{"a container:0 Unknown"}, "30", 0, false, "a 30s"},
		"never started":                      {[]string{"a container:0 Created"}, "30", 0, false, "sandbox"},
		"exited container":                   {[]string{"a container:0 Exited"}, "30", 0, false, "sandbox"},
		"no containers":                      {nil, "30", 0, false, "sandbox"},
		"unknown kinds":                      {[]string{"a z:z Running", "b : Running", "s sidecar:x Running"}, "30", 0, false, "a 30s, b 30s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inc := runtime.Incarnation{Sandbox: runtime.Sandbox{ID: "s", UID: "old", Ready: true, Annotations: map[string]string{runtime.AnnotationGracePeriod: test.grace}}}
			for _, text := range test.containers {
				var c runtime.Container
				var kind string
				if _, err := fmt.Sscan(text, &c.Name, &kind, &c.State); err != nil {
					t.Fatal(err)
				}
				c.ID, c.Annotations = c.Name, map[string]string{runtime.AnnotationContainerKind: kind}
				inc.Containers = append(inc.Containers, c)
			}
			now := time.Now()
			in := Input{SourcesRead: true, Now: now, ForceStop: test.force, Observed: []runtime.Incarnation{inc}, Node: Node{RuntimeReachable: true}}
			in.History.Stopping = &SandboxTermination{SandboxID: "s", Since: now.Round(0).Add(-test.elapsed), Grace: graceOf(&inc)}
			d := Next(in)
			var got []string
			for _, a := range d.Actions {
				switch a := a.(type) {
				case StopContainer:
					got = append(got, fmt.Sprintf("%s %s", a.Container, a.Grace.Round(time.Second)))
				case StopSandbox:
					got = append(got, "sandbox")
				default:
					t.Errorf("got action %s, want only stops", a)
				}
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("got %s, want %s\n%s", got, test.want, d)
			}
		})
	}
}

// TestStop_DuringStart checks that a start in progress is canceled before the sandbox is stopped,
// because it may still create a container. A start that was canceled before it called the runtime
// creates no container, but still uses the directory of the pod.
func TestStop_DuringStart(t *testing.T) {
	in := Input{
		SourcesRead: true, Now: time.Now(), Node: Node{RuntimeReachable: true},
		Observed: []runtime.Incarnation{{Sandbox: runtime.Sandbox{ID: "s", UID: "old", Ready: true}}},
		InFlight: map[string]Action{"container/a": StartContainer{Container: "a", SandboxID: "s"}},
		PodDirs:  []PodDir{{UID: "old"}, {UID: "older"}},
	}
	if d := Next(in); len(d.Actions) > 0 || d.Stopping == nil || !d.CancelStarts {
		t.Errorf("start in progress: got %s\nwant the start canceled and no action", d)
	}
	hook := RunPreStop{Container: "b", ID: "c", Grace: time.Second}
	in.InFlight[hook.Subject()] = hook
	if d := Next(in); len(d.Actions) != 1 || d.Actions[0] != Action(hook) {
		t.Errorf("start and preStop hook in progress: got %s\nwant only the hook as an action", d)
	}
	in.InFlight, in.DirsInUse = nil, map[types.UID]bool{"old": true}
	if d := Next(in); len(d.Actions) != 2 || d.Actions[0] != Action(StopSandbox{ID: "s", Why: "manifest removed"}) || d.Actions[1] != Action(RemoveDir{UID: "older"}) || d.CancelStarts {
		t.Errorf("start canceled: got %s\nwant the stop of the sandbox", d)
	}
	in.Observed, in.PodDirs = nil, in.PodDirs[:1]
	if d := Next(in); len(d.Actions) > 0 || d.FullyRemoved {
		t.Errorf("directory in use by a canceled start: got %s\nwant the directory kept", d)
	}
	in.DirsInUse = nil
	if d := Next(in); len(d.Actions) != 1 || d.Actions[0] != Action(RemoveDir{UID: "old"}) {
		t.Errorf("directory not in use: got %s\nwant the removal of the directory", d)
	}
	in.DirsInUse, in.PodDirs = map[types.UID]bool{"old": true}, nil
	if d := Next(in); len(d.Actions) > 0 || d.FullyRemoved {
		t.Errorf("only a canceled start remains: got %s\nwant no action, and the pod not fully removed", d)
	}
}

// TestWindDown_DuringStart checks that the volumes of an evicted pod are kept while a canceled
// start uses them.
func TestWindDown_DuringStart(t *testing.T) {
	in := fresh()
	in.Observed = []runtime.Incarnation{{Sandbox: runtime.Sandbox{ID: "s", UID: in.Desired.UID, Ready: true, Annotations: map[string]string{runtime.AnnotationPodHash: in.Desired.Hash}}}}
	in.PodDirs = []PodDir{{UID: in.Desired.UID, Hash: in.Desired.Hash, MayHaveVolumes: true}}
	in.Eviction = &Eviction{UID: in.Desired.UID, Hash: in.Desired.Hash, Message: "too big"}
	in.InFlight = map[string]Action{"container/app": StartContainer{Container: "app", SandboxID: "s"}}
	if d := Next(in); len(d.Actions) > 0 || d.Finished == nil || !d.CancelStarts {
		t.Errorf("start in progress: got %s\nwant the start canceled and no action", d)
	}
	in.InFlight, in.DirsInUse = nil, map[types.UID]bool{in.Desired.UID: true}
	if d := Next(in); len(d.Actions) != 1 || d.Actions[0].Subject() != "sandbox/s" {
		t.Errorf("start canceled: got %s\nwant the stop of the sandbox", d)
	}
	in.Observed = nil
	if d := Next(in); len(d.Actions) > 0 || d.Phase == PhaseCleanedUp {
		t.Errorf("volumes in use by a canceled start: got %s\nwant the volumes kept", d)
	}
	in.DirsInUse = nil
	if d := Next(in); len(d.Actions) != 1 || d.Actions[0] != Action(ReleaseResources{UID: in.Desired.UID}) {
		t.Errorf("volumes not in use: got %s\nwant the release of the volumes", d)
	}
}

// TestStop_WaitsForObservation checks that the stop of a sandbox waits within the grace period
// for an observation of the containers that were started in it.
func TestStop_WaitsForObservation(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		change func(*Input)
		want   []Action
		wake   time.Time
	}{
		"within the grace period": {func(*Input) {}, nil, now.Add(20 * time.Second)},
		"after the grace period":  {func(in *Input) { in.History.Stopping.Since = now.Add(-time.Minute) }, []Action{StopSandbox{ID: "s", Why: "manifest removed"}}, time.Time{}},
		"zero grace period":       {func(in *Input) { in.History.Stopping.Grace = 0 }, []Action{StopSandbox{ID: "s", Why: "manifest removed"}}, time.Time{}},
		"forced stop":             {func(in *Input) { in.ForceStop = true }, []Action{StopSandbox{ID: "s", Why: "manifest removed"}}, time.Time{}},
		"sandbox not ready":       {func(in *Input) { in.Observed[0].Ready = false }, []Action{StopSandbox{ID: "s", Why: "manifest removed"}}, time.Time{}},
		"observed":                {func(in *Input) { in.MayHaveUnobserved = false }, []Action{StopSandbox{ID: "s", Why: "manifest removed"}}, time.Time{}},
		"another container runs": {func(in *Input) {
			in.Observed[0].Containers = []runtime.Container{{ID: "c", Name: "a", State: runtime.Running}}
		}, []Action{StopContainer{Container: "a", ID: "c", Grace: 20 * time.Second, Why: "manifest removed"}}, time.Time{}},
		"hook in progress": {func(in *Input) {
			hook := RunPreStop{Container: "b", ID: "c", Grace: time.Second}
			in.InFlight[hook.Subject()] = hook
		}, []Action{RunPreStop{Container: "b", ID: "c", Grace: time.Second}}, now.Add(20 * time.Second)},
	} {
		in := Input{
			SourcesRead: true, MayHaveUnobserved: true, Now: now, Node: Node{RuntimeReachable: true}, InFlight: map[string]Action{},
			Observed: []runtime.Incarnation{{Sandbox: runtime.Sandbox{ID: "s", UID: "old", Ready: true}}},
		}
		in.History.Stopping = &SandboxTermination{SandboxID: "s", Since: now.Add(-10 * time.Second), Grace: 30 * time.Second, Why: "manifest removed"}
		c.change(&in)
		if d := Next(in); !slices.Equal(d.Actions, c.want) || !d.WakeAt.Equal(c.wake) {
			t.Errorf("%s: got actions %v and wake time %v, want %v and %v\n%s", name, d.Actions, d.WakeAt, c.want, c.wake, d)
		}
	}
}

// TestStop_KeepsReason checks that each sandbox is stopped for its own reason.
func TestStop_KeepsReason(t *testing.T) {
	one := func(id string, attempt uint32) runtime.Incarnation {
		return runtime.Incarnation{Sandbox: runtime.Sandbox{ID: id, UID: "old", Attempt: attempt, Ready: true}}
	}
	in := fresh()
	in.History.Stopping = &SandboxTermination{SandboxID: "a", Since: in.Now, Why: "restart requested"}
	in.Observed = []runtime.Incarnation{one("b", 1), one("a", 0)}
	if d := Next(in); d.Why != "restart requested" || d.Actions[0].Subject() != "sandbox/a" || d.Stopping != nil {
		t.Errorf("stop in progress: got %s\nwant the same stop with its own reason", d)
	}
	in.Observed = in.Observed[:1]
	if d := Next(in); d.Why != "changed" || d.Stopping == nil || d.Stopping.SandboxID != "b" {
		t.Errorf("next sandbox: got %s\nwant a new stop with the reason \"changed\"", d)
	}
}

// TestStop_KeepsHook checks that a preStop hook in progress continues if the runtime does not
// respond or a source was not read. If it were canceled, it would run a second time later.
func TestStop_KeepsHook(t *testing.T) {
	hook := RunPreStop{Container: "app", ID: "c", Grace: time.Second}
	pull := EnsureImage{Container: "app", Image: "i"}
	for name, in := range map[string]Input{
		"the runtime does not respond": {SourcesRead: true},
		"a source was not read":        {Node: Node{RuntimeReachable: true, RuntimeReady: true}},
	} {
		in.InFlight, in.Now = map[string]Action{hook.Subject(): hook, pull.Subject(): pull}, time.Now()
		if d := Next(in); len(d.Actions) != 1 || d.Actions[0] != Action(hook) {
			t.Errorf("%s: got actions %v by rule %s, want only the hook in progress", name, d.Actions, d.Rule)
		}
	}
}

// TestStop_All checks that the reason for the stop of every pod is shown, also for a pod that is
// still in its sources, and that a stop in progress keeps its own reason.
func TestStop_All(t *testing.T) {
	in := Input{
		SourcesRead: true, StopAllReason: "podd down", Now: time.Now(), Node: Node{RuntimeReachable: true},
		Observed: []runtime.Incarnation{{Sandbox: runtime.Sandbox{ID: "s", UID: "u", Ready: true}}},
	}
	if d := Next(in); d.Why != "podd down" || d.Stopping == nil || d.Stopping.Why != "podd down" {
		t.Errorf("got reason %q, want %q\n%s", d.Why, "podd down", d)
	}
	in.History.Stopping = &SandboxTermination{SandboxID: "s", Since: in.Now, Grace: 30 * time.Second, Why: "manifest removed"}
	if d := Next(in); d.Why != "manifest removed" {
		t.Errorf("stop in progress: got reason %q, want %q\n%s", d.Why, "manifest removed", d)
	}
}

// TestDeletion_WithEviction checks that an eviction limits the grace period of a deletion, and that a later
// request retains the first eviction of the pod.
func TestDeletion_WithEviction(t *testing.T) {
	start := time.Now()
	first, second := &Eviction{Grace: 20 * time.Second}, &Eviction{}
	for name, test := range map[string]struct {
		requested time.Duration // grace period of the deletion, 10 s before the eviction
		evictions []*Eviction
		wantEnd   time.Duration // end of the grace period after the deletion
	}{
		"shorter":            {time.Minute, []*Eviction{first}, 30 * time.Second},
		"longer":             {15 * time.Second, []*Eviction{first}, 15 * time.Second},
		"at least a second":  {time.Minute, []*Eviction{first, second}, 11 * time.Second},
		"again without need": {15 * time.Second, []*Eviction{first, first}, 15 * time.Second},
	} {
		d := NewDeletion(nil, "u", test.requested, start)
		for _, e := range test.evictions {
			d = d.WithEviction(e, start.Add(10*time.Second))
		}
		if got := d.At.Add(d.Grace).Sub(start); got != test.wantEnd || d.Eviction != first {
			t.Errorf("%s: got an end after %s and eviction %p, want %s and %p", name, got, d.Eviction, test.wantEnd, first)
		}
		if d.WithEviction(first, start.Add(10*time.Second)) != d {
			t.Errorf("%s: a repeated eviction returns another deletion, want the same", name)
		}
		if e := NewDeletion(d, "u", time.Second, start).Eviction; e != first {
			t.Errorf("%s: got eviction %p after another request to delete the pod, want %p", name, e, first)
		}
		if e := NewDeletion(d, "other", time.Second, start).Eviction; e != nil {
			t.Errorf("%s: got eviction %p for another pod, want none", name, e)
		}
	}
}
