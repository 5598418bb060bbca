package manifest

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestRestarts checks after which exits a container is restarted, and whether its pod can
// complete.
func TestRestarts(t *testing.T) {
	in := func(codes ...int32) v1.ContainerRestartRule {
		return v1.ContainerRestartRule{Action: "Restart", ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: codes}}
	}
	notIn := func(codes ...int32) v1.ContainerRestartRule {
		return v1.ContainerRestartRule{Action: "Restart", ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: "NotIn", Values: codes}}
	}
	tests := []struct {
		pod, container   string // restart policies
		rules            []v1.ContainerRestartRule
		zero, one, other bool // whether the container is restarted after exit codes 0, 1 and 42
		runsForever      bool
	}{
		{"Always", "", nil, true, true, true, true},
		{"OnFailure", "", nil, false, true, true, false},
		{"Never", "", nil, false, false, false, false},
		{"Never", "Always", nil, true, true, true, true},
		{"Always", "Never", nil, false, false, false, false},
		{"Always", "OnFailure", nil, false, true, true, false},
		{"Always", "Never", []v1.ContainerRestartRule{in(42)}, false, false, true, false},
		{"Never", "Never", []v1.ContainerRestartRule{notIn(42)}, true, true, false, false},
		{"Never", "Never", []v1.ContainerRestartRule{in(1), in(42)}, false, true, true, false},
		{"Never", "Never", []v1.ContainerRestartRule{in()}, false, false, false, false},
		{"Never", "Never", []v1.ContainerRestartRule{notIn()}, true, true, true, true},
		{"Never", "Never", []v1.ContainerRestartRule{notIn(1, 42), in(42), notIn(42)}, true, true, true, true},
		{"Never", "OnFailure", []v1.ContainerRestartRule{in(0)}, true, true, true, true},
		{"Never", "Never", []v1.ContainerRestartRule{in(0, 1, 42)}, true, true, true, false},
		{"Never", "", []v1.ContainerRestartRule{in(42)}, false, false, false, false},
		{"Never", "Never", []v1.ContainerRestartRule{{Action: "Ignore", ExitCodes: in(42).ExitCodes}, {Action: "Restart"}}, false, false, false, false},
	}
	for _, tt := range tests {
		c := v1.Container{RestartPolicyRules: tt.rules}
		if policy := v1.ContainerRestartPolicy(tt.container); policy != "" {
			c.RestartPolicy = &policy
		}
		spec := &v1.PodSpec{RestartPolicy: v1.RestartPolicy(tt.pod), Containers: []v1.Container{c}}
		for code, want := range map[int32]bool{0: tt.zero, 1: tt.one, 42: tt.other} {
			if got := RestartsAfter(spec, &c, code); got != want {
				t.Errorf("%+v, exit code %d: got restart %t, want %t", tt, code, got, want)
			}
		}
		if got := RunsForever(spec); got != tt.runsForever {
			t.Errorf("%+v: got RunsForever %t, want %t", tt, got, tt.runsForever)
		}
	}
}

// TestRestartsAllAfter checks that the first rule that matches an exit code decides whether all
// containers of the pod are restarted. The rules of a container without a restart policy must have no
// effect.
func TestRestartsAllAfter(t *testing.T) {
	rule := func(action v1.ContainerRestartRuleAction, codes ...int32) v1.ContainerRestartRule {
		return v1.ContainerRestartRule{Action: action, ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: codes}}
	}
	never := v1.ContainerRestartPolicyNever
	c := v1.Container{RestartPolicy: &never, RestartPolicyRules: []v1.ContainerRestartRule{
		rule("Restart", 1), rule("RestartAllContainers", 1, 42), rule("Restart", 42),
	}}
	spec := &v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, InitContainers: []v1.Container{c}}
	for code, want := range map[int32]bool{0: false, 1: false, 2: false, 42: true} {
		if got := RestartsAllAfter(&c, code); got != want {
			t.Errorf("RestartsAllAfter of exit code %d: got %t, want %t", code, got, want)
		}
		if got, want := RestartsAfter(spec, &c, code), code == 1 || code == 42; got != want {
			t.Errorf("exit code %d: got restart %t, want %t", code, got, want)
		}
	}
	if !CanRestartAll(&c) || !HasRestartAll(spec) {
		t.Error("container with a rule RestartAllContainers: got CanRestartAll or HasRestartAll false, want both true")
	}
	c.RestartPolicy = nil
	if RestartsAllAfter(&c, 42) || CanRestartAll(&c) {
		t.Error("container without a restart policy: got RestartsAllAfter or CanRestartAll true, want both false")
	}
}
