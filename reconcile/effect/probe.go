package effect

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/wording"
	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/reconcile/render"
	"podd/reconcile/status"
	"podd/runtime"
)

// maxExecOutput is the maximum number of bytes that are read from each output stream of an exec
// probe.
const maxExecOutput = 10 << 10

// probe makes one attempt of a probe of a container. p is the version of the container, or nil if
// the container no longer exists. probe returns an error if the attempt could not be carried out.
func (e *Runner) probe(ctx context.Context, s Input, p *manifest.Pod, a plan.RunProbe) (probe.Result, error) {
	if p == nil {
		return probe.Result{}, fmt.Errorf("container %s no longer exists", a.Container)
	}
	c, _, _ := plan.FindContainer(p.Object, a.Container)
	if c == nil || plan.FindProbe(c, a.Kind) == nil {
		return probe.Result{}, fmt.Errorf("container %s no longer has a %s probe", a.Container, a.Kind)
	}
	spec := plan.FindProbe(c, a.Kind)
	timeout := time.Duration(max(spec.TimeoutSeconds, 1)) * time.Second
	if spec.Exec != nil {
		return e.exec(ctx, a.ID, expandStaticVariables(c, spec.Exec.Command), timeout)
	}
	target := probe.Target{IP: s.address(p, a.ID), Ports: c.Ports, Timeout: timeout}
	r, err := probe.Attempt(ctx, &spec.ProbeHandler, target)
	if err == nil && !r.Passed && p.Object.Spec.HostNetwork && probe.UsesPodAddress(&spec.ProbeHandler) && e.isLostAddress(target.IP) {
		return probe.Result{}, fmt.Errorf("this host has lost the node's address %s: %s", target.IP, r.Message)
	}
	return r, err
}

// isLostAddress reports whether ip, an address of the node, does not belong to the host any more.
// If a probe of ip fails in this case, the container may be healthy. If e.IsLocal is nil,
// isLostAddress returns false.
func (e *Runner) isLostAddress(ip string) bool { return e.IsLocal != nil && !e.IsLocal(ip) }

// exec runs a command in a container. The result has passed if the command exits with 0 before the
// timeout.
func (e *Runner) exec(ctx context.Context, id string, command []string, timeout time.Duration) (probe.Result, error) {
	r, err := e.Runtime.ExecSync(ctx, id, command, timeout, maxExecOutput)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return probe.Result{}, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, runtime.ErrUnavailable):
		return probe.Result{Message: wording.FirstLine(err.Error())}, nil
	default:
		return probe.Result{}, err
	}
	if r.ExitCode == 0 {
		return probe.Result{Passed: true}, nil
	}
	output := wording.FirstLine(string(r.Stdout))
	if output == "" {
		output = wording.FirstLine(string(r.Stderr))
	}
	if output == "" {
		return probe.Result{Message: fmt.Sprintf("exit %d", r.ExitCode)}, nil
	}
	return probe.Result{Message: fmt.Sprintf("exit %d: %s", r.ExitCode, output)}, nil
}

// expandStaticVariables expands $(NAME) in the command of a probe. As in a kubelet, only variables
// with a value in the manifest are expanded, and variables with valueFrom are not.
func expandStaticVariables(c *v1.Container, command []string) []string {
	lookup := func(name string) (value string, ok bool) {
		for _, v := range c.Env {
			if v.Name == name {
				value, ok = v.Value, true
			}
		}
		return value, ok
	}
	result := make([]string, len(command))
	for i, argument := range command {
		result[i] = render.Expand(argument, lookup)
	}
	return result
}

// address returns the address to which probes of the container with this ID connect. It is the
// first address of the sandbox. If p uses the host's network, it is the first address of the node.
// It is "" if there is no address.
func (s Input) address(p *manifest.Pod, id string) string {
	ips := s.Node.HostIPs
	if !p.Object.Spec.HostNetwork {
		ips = nil
		for i := range s.Observed {
			for _, c := range s.Observed[i].Containers {
				if c.ID == id {
					ips = s.Observed[i].IPs
				}
			}
		}
	}
	if addresses := status.OnePerFamily(ips, s.Node.HostIPs); len(addresses) > 0 {
		return addresses[0]
	}
	return ""
}
