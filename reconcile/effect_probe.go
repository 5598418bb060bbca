package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/reconcile/render"
	"podd/reconcile/status"
	"podd/runtime"
)

// execLimit is the most that is kept of each stream of an exec probe.
const execLimit = 10 << 10

// probe makes one attempt on a container of p, which is nil once it is gone. An
// error says that none could be made.
func (e *Effects) probe(ctx context.Context, s scene, p *manifest.Pod, a plan.Probe) (probe.Result, error) {
	if p == nil {
		return probe.Result{}, fmt.Errorf("container %s is gone", a.Container)
	}
	c, _, _ := findContainer(p.Spec, a.Container)
	if c == nil || plan.ProbeOf(c, a.Kind) == nil {
		return probe.Result{}, fmt.Errorf("container %s has no %s probe any more", a.Container, a.Kind)
	}
	how := plan.ProbeOf(c, a.Kind)
	timeout := time.Duration(max(how.TimeoutSeconds, 1)) * time.Second
	if how.Exec != nil {
		return e.exec(ctx, a.ID, staticCommand(c, how.Exec.Command), timeout)
	}
	return probe.Attempt(ctx, &how.ProbeHandler, probe.Target{IP: s.address(p, a.ID), Ports: c.Ports, Timeout: timeout})
}

// exec passes when the command ends with 0 in time.
func (e *Effects) exec(ctx context.Context, id string, command []string, timeout time.Duration) (probe.Result, error) {
	r, err := e.Runtime.ExecSync(ctx, id, command, timeout, execLimit)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return probe.Result{}, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, runtime.ErrUnavailable):
		return probe.Result{Message: probe.Line(err.Error())}, nil
	default:
		return probe.Result{}, err
	}
	if r.ExitCode == 0 {
		return probe.Result{Passed: true}, nil
	}
	said := probe.Line(string(r.Stdout))
	if said == "" {
		said = probe.Line(string(r.Stderr))
	}
	if said == "" {
		return probe.Result{Message: fmt.Sprintf("exit %d", r.ExitCode)}, nil
	}
	return probe.Result{Message: fmt.Sprintf("exit %d: %s", r.ExitCode, said)}, nil
}

// staticCommand expands $(NAME) by the values that stand in the manifest: a
// probe's command sees no others.
func staticCommand(c *v1.Container, command []string) []string {
	lookup := func(name string) (value string, ok bool) {
		for _, v := range c.Env {
			if v.Name == name {
				value, ok = v.Value, true
			}
		}
		return value, ok
	}
	expanded := make([]string, len(command))
	for i, word := range command {
		expanded[i] = render.Expand(word, lookup)
	}
	return expanded
}

// address is the first of the pod that a container of p is in; "" when it has none.
func (s scene) address(p *manifest.Pod, id string) string {
	ips := s.node.HostIPs
	if !p.Spec.Spec.HostNetwork {
		ips = nil
		for i := range s.observed {
			for _, c := range s.observed[i].Containers {
				if c.ID == id {
					ips = s.observed[i].IPs
				}
			}
		}
	}
	if first := status.OnePerFamily(ips, s.node.HostIPs); len(first) > 0 {
		return first[0]
	}
	return ""
}
