package effect

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// execs is a Runtime that implements only ExecSync.
type execs struct {
	Runtime
	result runtime.ExecResult
	err    error
}

func (e execs) ExecSync(context.Context, string, []string, time.Duration, int) (runtime.ExecResult, error) {
	return e.result, e.err
}

// slow is the error that package cri returns for a command that exceeds its time limit.
type slow struct{ error }

func (slow) Is(target error) bool { return target == context.DeadlineExceeded }

func TestExec(t *testing.T) {
	exits := func(code int32, out, err string) execs {
		return execs{result: runtime.ExecResult{ExitCode: code, Stdout: []byte(out), Stderr: []byte(err)}}
	}
	tests := map[string]struct {
		does    execs
		passed  bool
		message string
		errored bool
	}{
		"succeeds":          {exits(0, "fine", ""), true, "", false},
		"fails":             {exits(1, "\nno disk\nmore", "noise"), false, "exit 1: no disk", false},
		"fails on stderr":   {exits(2, " \n", "cat: x: no such file"), false, "exit 2: cat: x: no such file", false},
		"fails, no output":  {exits(3, "", ""), false, "exit 3", false},
		"too slow":          {execs{err: slow{errors.New("the command took longer than 1s")}}, false, "the command took longer than 1s", false},
		"no such command":   {execs{err: errors.New("no such file")}, false, "", true},
		"no such container": {execs{err: runtime.ErrNotFound}, false, "", true},
		"no response":       {execs{err: errors.Join(runtime.ErrUnavailable, context.DeadlineExceeded)}, false, "", true},
	}
	for name, test := range tests {
		e := &Runner{Runtime: test.does}
		got, err := e.exec(t.Context(), "c", []string{"check"}, time.Second)
		if got.Passed != test.passed || got.Message != test.message || (err != nil) != test.errored {
			t.Errorf("%s: got %+v with error %v, want passed %t, message %q and error %t", name, got, err, test.passed, test.message, test.errored)
		}
	}
}

// withContainer returns a pod with one container.
func withContainer(name string) *manifest.Pod {
	return &manifest.Pod{Object: &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: name}}}}}
}

// TestAddress checks that a pod is probed at the address in its status.
func TestAddress(t *testing.T) {
	p := withContainer("a")
	s := Input{Desired: p, Node: &render.Node{HostIPs: []string{"2001:db8::1", "192.0.2.1"}}}
	s.Observed = []runtime.Incarnation{{Containers: []runtime.Container{{ID: "c", Name: "a"}}}}
	s.Observed[0].IPs = []string{"10.88.0.3", "fd00::3"}
	for _, test := range []struct {
		id   string
		host bool
		want string
	}{{"c", false, "fd00::3"}, {"other", false, ""}, {"c", true, "2001:db8::1"}} {
		p.Object.Spec.HostNetwork = test.host
		if got := s.address(p, test.id); got != test.want {
			t.Errorf("container %s, host network %v: got %q, want %q", test.id, test.host, got, test.want)
		}
	}
}

// TestStaticCommand checks that only variables with a value in the manifest are expanded.
func TestStaticCommand(t *testing.T) {
	c := &v1.Container{Env: []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}, {Name: "A", Value: "2"}}}
	command := []string{"$(A)", "$(B)", "$(C)", "$$(A)"}
	got := expandStaticVariables(c, command)
	for i, want := range []string{"2", "$(A)", "$(C)", "$(A)"} {
		if got[i] != want {
			t.Errorf("%s: got %q, want %q", command[i], got[i], want)
		}
	}
}

// TestProbe_Missing checks that a probe returns an error if the desired version lacks the
// container or the probe.
func TestProbe_Missing(t *testing.T) {
	s := Input{Desired: withContainer("a"), Node: &render.Node{}}
	for _, name := range []string{"a", "b"} {
		if _, err := (&Runner{}).probe(t.Context(), s, s.Desired, plan.RunProbe{Container: name, Kind: plan.LivenessProbe}); err == nil {
			t.Errorf("probe of container %s: got no error, want one", name)
		}
	}
}
