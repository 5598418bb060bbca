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

// TestStopOrder: what is ended next of a sandbox that is to go. A container is
// "name kind:index state"; the answer is what is stopped, with its grace.
func TestStopOrder(t *testing.T) {
	tests := map[string]struct {
		containers []string
		grace      string        // of the sandbox; "" is the default
		elapsed    time.Duration // since it is being stopped
		hurry      bool
		want       string
	}{
		"side by side":             {[]string{"b container:1 Running", "a container:0 Running"}, "30", 0, false, "a 30s, b 30s"},
		"init with the others":     {[]string{"a container:0 Running", "i init:0 Running"}, "30", 0, false, "a 30s, i 30s"},
		"sidecars after them":      {[]string{"s sidecar:0 Running", "a container:0 Running"}, "30", 0, false, "a 30s"},
		"the last sidecar first":   {[]string{"s sidecar:0 Running", "r sidecar:2 Running", "a container:0 Exited"}, "30", 0, false, "r 30s"},
		"then the one before":      {[]string{"s sidecar:0 Running", "r sidecar:2 Exited"}, "30", 0, false, "s 30s"},
		"the rest of the grace":    {[]string{"a container:0 Running"}, "30", 12 * time.Second, false, "a 18s"},
		"no less than two seconds": {[]string{"a container:0 Running"}, "30", 29 * time.Second, false, "a 2s"},
		"also when it is over":     {[]string{"a container:0 Running"}, "30", time.Hour, false, "a 2s"},
		"a grace of one":           {[]string{"a container:0 Running"}, "1", time.Hour, false, "a 2s"},
		"a clock that went back":   {[]string{"a container:0 Running"}, "30", -years, false, "a 30s"},
		"no grace":                 {[]string{"a container:0 Running"}, "0", 0, false, "sandbox"},
		"in a hurry":               {[]string{"a container:0 Running"}, "30", 0, true, "sandbox"},
		"the default":              {[]string{"a container:0 Running"}, "", 0, false, "a 30s"},
		"garbage":                  {[]string{"a container:0 Running"}, "soon", 0, false, "a 30s"},
		"negative":                 {[]string{"a container:0 Running"}, "-5", 0, false, "a 30s"},
		"unknown states too":       {[]string{"a container:0 Unknown"}, "30", 0, false, "a 30s"},
		"never started":            {[]string{"a container:0 Created"}, "30", 0, false, "sandbox"},
		"nothing runs":             {[]string{"a container:0 Exited"}, "30", 0, false, "sandbox"},
		"empty":                    {nil, "30", 0, false, "sandbox"},
		"kinds nobody knows":       {[]string{"a z:z Running", "b : Running", "s sidecar:x Running"}, "30", 0, false, "a 30s, b 30s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inc := runtime.Incarnation{Sandbox: runtime.Sandbox{ID: "s", UID: "old", Ready: true, Annotations: map[string]string{runtime.AnnotationGrace: test.grace}}}
			for _, text := range test.containers {
				var c runtime.Container
				var kind string
				if _, err := fmt.Sscan(text, &c.Name, &kind, &c.State); err != nil {
					t.Fatal(err)
				}
				c.ID, c.Annotations = c.Name, map[string]string{runtime.AnnotationKind: kind}
				inc.Containers = append(inc.Containers, c)
			}
			now := time.Now()
			in := Input{Certain: true, Now: now, Hurry: test.hurry, Observed: []runtime.Incarnation{inc}, Node: Node{Reachable: true}}
			in.History.Stopping = &Stopping{SandboxID: "s", Since: now.Round(0).Add(-test.elapsed), Grace: graceOf(&inc)}
			d := Next(in)
			var got []string
			for _, a := range d.Actions {
				switch a := a.(type) {
				case StopContainer:
					got = append(got, fmt.Sprintf("%s %s", a.Container, a.Grace.Round(time.Second)))
				case StopSandbox:
					got = append(got, "sandbox")
				default:
					t.Errorf("unasked %s", a)
				}
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("stops %s, want %s\n%s", got, test.want, d)
			}
		})
	}
}

// TestStopDuringStart: a start under way is cancelled, and may still make a container
// until it ends. One that was given up makes none, and uses the pod's directory.
func TestStopDuringStart(t *testing.T) {
	in := Input{
		Certain: true, Now: time.Now(), Node: Node{Reachable: true},
		Observed: []runtime.Incarnation{{Sandbox: runtime.Sandbox{ID: "s", UID: "old", Ready: true}}},
		InFlight: map[string]Action{"container/a": StartContainer{Container: "a", SandboxID: "s"}},
		Dirs:     []Dir{{UID: "old"}, {UID: "older"}},
	}
	if d := Next(in); len(d.Actions) > 0 || d.Stopping == nil || !d.CancelStarts {
		t.Errorf("want the start cancelled, and no action\n%s", d)
	}
	hook := PreStop{Container: "b", ID: "c", Grace: time.Second}
	in.InFlight[hook.Subject()] = hook
	if d := Next(in); len(d.Actions) != 1 || d.Actions[0] != Action(hook) {
		t.Errorf("a hook under way would be made twice\n%s", d)
	}
	in.InFlight, in.Used = nil, map[types.UID]bool{"old": true}
	if d := Next(in); len(d.Actions) != 2 || d.Actions[0] != Action(StopSandbox{ID: "s", Why: "manifest removed"}) || d.Actions[1] != Action(RemoveDir{UID: "older"}) || d.CancelStarts {
		t.Errorf("want the sandbox stopped\n%s", d)
	}
	in.Observed, in.Dirs = nil, in.Dirs[:1]
	if d := Next(in); len(d.Actions) > 0 || d.Done {
		t.Errorf("want the directory kept\n%s", d)
	}
	in.Used = nil
	if d := Next(in); len(d.Actions) != 1 || d.Actions[0] != Action(RemoveDir{UID: "old"}) {
		t.Errorf("want the directory removed\n%s", d)
	}
	in.Used, in.Dirs = map[types.UID]bool{"old": true}, nil
	if d := Next(in); len(d.Actions) > 0 || d.Done {
		t.Errorf("want the start waited for\n%s", d)
	}
}

// TestWindDownDuringStart: the same of a pod that is evicted, whose volumes are kept for a
// start that was given up.
func TestWindDownDuringStart(t *testing.T) {
	in := fresh()
	in.Observed = []runtime.Incarnation{{Sandbox: runtime.Sandbox{ID: "s", UID: in.Desired.UID, Ready: true, Annotations: map[string]string{runtime.AnnotationHash: in.Desired.Hash}}}}
	in.Dirs = []Dir{{UID: in.Desired.UID, Hash: in.Desired.Hash, Volumes: true}}
	in.Evict = &Evict{UID: in.Desired.UID, Hash: in.Desired.Hash, Message: "too big"}
	in.InFlight = map[string]Action{"container/app": StartContainer{Container: "app", SandboxID: "s"}}
	if d := Next(in); len(d.Actions) > 0 || d.Finished == nil || !d.CancelStarts {
		t.Errorf("want the start cancelled, and no action\n%s", d)
	}
	in.InFlight, in.Used = nil, map[types.UID]bool{in.Desired.UID: true}
	if d := Next(in); len(d.Actions) != 1 || d.Actions[0].Subject() != "sandbox/s" {
		t.Errorf("want the sandbox stopped\n%s", d)
	}
	in.Observed = nil
	if d := Next(in); len(d.Actions) > 0 || d.Phase == PhaseRest {
		t.Errorf("want the volumes kept\n%s", d)
	}
	in.Used = nil
	if d := Next(in); len(d.Actions) != 1 || d.Actions[0] != Action(ReleaseVolumes{UID: in.Desired.UID}) {
		t.Errorf("want the volumes released\n%s", d)
	}
}

// TestStopWaitsForObservation: the end of a sandbox waits, as long as there is grace, for
// an observation of what was started in it.
func TestStopWaitsForObservation(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		change func(*Input)
		want   []Action
		wake   time.Time
	}{
		"grace left":      {func(*Input) {}, nil, now.Add(20 * time.Second)},
		"grace over":      {func(in *Input) { in.History.Stopping.Since = now.Add(-time.Minute) }, []Action{StopSandbox{ID: "s", Why: "manifest removed"}}, time.Time{}},
		"no grace":        {func(in *Input) { in.History.Stopping.Grace = 0 }, []Action{StopSandbox{ID: "s", Why: "manifest removed"}}, time.Time{}},
		"in a hurry":      {func(in *Input) { in.Hurry = true }, []Action{StopSandbox{ID: "s", Why: "manifest removed"}}, time.Time{}},
		"sandbox is dead": {func(in *Input) { in.Observed[0].Ready = false }, []Action{StopSandbox{ID: "s", Why: "manifest removed"}}, time.Time{}},
		"observed":        {func(in *Input) { in.Unseen = false }, []Action{StopSandbox{ID: "s", Why: "manifest removed"}}, time.Time{}},
		"another container runs": {func(in *Input) {
			in.Observed[0].Containers = []runtime.Container{{ID: "c", Name: "a", State: runtime.Running}}
		}, []Action{StopContainer{Container: "a", ID: "c", Grace: 20 * time.Second, Why: "manifest removed"}}, time.Time{}},
		"a hook is under way": {func(in *Input) {
			hook := PreStop{Container: "b", ID: "c", Grace: time.Second}
			in.InFlight[hook.Subject()] = hook
		}, []Action{PreStop{Container: "b", ID: "c", Grace: time.Second}}, now.Add(20 * time.Second)},
	} {
		in := Input{
			Certain: true, Unseen: true, Now: now, Node: Node{Reachable: true}, InFlight: map[string]Action{},
			Observed: []runtime.Incarnation{{Sandbox: runtime.Sandbox{ID: "s", UID: "old", Ready: true}}},
		}
		in.History.Stopping = &Stopping{SandboxID: "s", Since: now.Add(-10 * time.Second), Grace: 30 * time.Second, Why: "manifest removed"}
		c.change(&in)
		if d := Next(in); !slices.Equal(d.Actions, c.want) || !d.Wake.Equal(c.wake) {
			t.Errorf("%s: want %v, wake %v\n%s", name, c.want, c.wake, d)
		}
	}
}

// TestStopKeepsItsReason: what is being stopped was given a reason; another
// termination does not lend it its own.
func TestStopKeepsItsReason(t *testing.T) {
	one := func(id string, attempt uint32) runtime.Incarnation {
		return runtime.Incarnation{Sandbox: runtime.Sandbox{ID: id, UID: "old", Attempt: attempt, Ready: true}}
	}
	in := fresh()
	in.History.Stopping = &Stopping{SandboxID: "a", Since: in.Now, Why: "restart asked"}
	in.Observed = []runtime.Incarnation{one("b", 1), one("a", 0)}
	if d := Next(in); d.Why != "restart asked" || d.Actions[0].Subject() != "sandbox/a" || d.Stopping != nil {
		t.Errorf("the one under way goes on\n%s", d)
	}
	in.Observed = in.Observed[:1]
	if d := Next(in); d.Why != "changed" || d.Stopping == nil || d.Stopping.SandboxID != "b" {
		t.Errorf("the next one has its own reason\n%s", d)
	}
}

// TestHookGoesOn: a preStop hook under way is not given up, and made again, since
// podd cannot see or is not sure.
func TestHookGoesOn(t *testing.T) {
	hook := PreStop{Container: "app", ID: "c", Grace: time.Second}
	pull := EnsureImage{Container: "app", Image: "i"}
	for name, in := range map[string]Input{
		"the runtime does not answer": {Certain: true},
		"a source is not complete":    {Node: Node{Reachable: true, Ready: true}},
	} {
		in.InFlight, in.Now = map[string]Action{hook.Subject(): hook, pull.Subject(): pull}, time.Now()
		if d := Next(in); len(d.Actions) != 1 || d.Actions[0] != Action(hook) {
			t.Errorf("%s: %s names %v", name, d.Rule, d.Actions)
		}
	}
}
