package effect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/reconcile/result"
	"podd/reconcile/status"
	"podd/runtime"
)

// postStart runs the postStart hook of a container that was just started. The hook has no timeout.
// It is interrupted when ctx is canceled.
func (e *Runner) postStart(ctx context.Context, s Input, a plan.RunPostStart) (result.CalledHook, error) {
	c, _, _ := plan.FindContainer(s.Desired.Object, a.Container)
	if c == nil || !plan.HasPostStart(c) {
		return result.CalledHook{}, fmt.Errorf("container %s no longer has a postStart hook", a.Container)
	}
	h, target := c.Lifecycle.PostStart, probe.Target{IP: s.address(s.Desired, a.ID), Ports: c.Ports}
	call, err := e.runHook(ctx, a.ID, h, target)
	if err == nil || ctx.Err() != nil || h.HTTPGet == nil || !probe.UsesPodAddress(&v1.ProbeHandler{HTTPGet: h.HTTPGet}) ||
		!s.Desired.Object.Spec.HostNetwork || !e.isLostAddress(target.IP) {
		return call, err
	}
	return call, &notCalledError{fmt.Errorf("calling the postStart hook of container %s: %w; this host has lost the node's address %s", a.Container, err, target.IP)}
}

// A notCalledError is the error of a hook whose request did not reach the container. It matches
// runtime.ErrUnavailable, so that the hook is called again.
type notCalledError struct{ error }

// Unwrap returns the wrapped error and runtime.ErrUnavailable.
func (e *notCalledError) Unwrap() []error { return []error{e.error, runtime.ErrUnavailable} }

// preStop runs the preStop hook of a container. It reads the hook from the annotations of the
// container, because the manifest may no longer exist. The timeout is the remaining part of the
// grace period. preStop does nothing if the container no longer exists or has no hook.
func (e *Runner) preStop(ctx context.Context, s Input, a plan.RunPreStop) (result.CalledHook, error) {
	inc, c := runtime.FindContainer(s.Observed, a.ID)
	if c == nil {
		return result.CalledHook{}, nil // the container no longer exists
	}
	h := plan.RecordedPreStop(c)
	if h == nil {
		return result.CalledHook{}, nil
	}
	target := probe.Target{Timeout: a.Grace}
	ips := inc.IPs
	if len(ips) == 0 { // the pod uses the network of the node
		ips = s.Node.HostIPs
	}
	if addresses := status.OnePerFamily(ips, s.Node.HostIPs); len(addresses) > 0 {
		target.IP = addresses[0]
	}
	if encodedPorts := c.Annotations[runtime.AnnotationContainerPorts]; encodedPorts != "" {
		// Ignore an invalid annotation. A hook that needs a named port then fails with a clear
		// error.
		_ = json.Unmarshal([]byte(encodedPorts), &target.Ports)
	}
	return e.runHook(ctx, a.ID, h, target)
}

// runHook runs a hook once. It does not expand variables like $(NAME) in the command of a hook.
// Like the kubelet, podd expands them only in the command of a probe.
func (e *Runner) runHook(ctx context.Context, id string, h *v1.LifecycleHandler, target probe.Target) (result.CalledHook, error) {
	if h.Exec == nil {
		plainHost, err := probe.CallHTTPHook(ctx, h, target)
		return result.CalledHook{PlainHost: plainHost}, err
	}
	r, err := e.exec(ctx, id, h.Exec.Command, target.Timeout)
	if err == nil && !r.Passed {
		err = errors.New(r.Message)
	}
	return result.CalledHook{}, err
}
