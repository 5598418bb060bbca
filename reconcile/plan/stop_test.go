package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

// TestStopWaitsForStarts: what is being started may still appear; it ends first.
func TestStopWaitsForStarts(t *testing.T) {
	in := Input{
		Certain: true, Now: time.Now(), Node: Node{Reachable: true},
		Observed: []runtime.Incarnation{{Sandbox: runtime.Sandbox{ID: "s", UID: "old", Ready: true}}},
		InFlight: map[string]Action{"container/a": StartContainer{Container: "a", SandboxID: "s"}},
		Dirs:     []Dir{{UID: "old"}, {UID: "older"}},
	}
	if d := Next(in); len(d.Actions) > 0 || d.Stopping == nil {
		t.Errorf("want nothing but to remember\n%s", d)
	}
	hook := PreStop{Container: "b", ID: "c", Grace: time.Second}
	in.InFlight[hook.Subject()] = hook
	if d := Next(in); len(d.Actions) != 1 || d.Actions[0] != Action(hook) {
		t.Errorf("a hook under way would be made twice\n%s", d)
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
