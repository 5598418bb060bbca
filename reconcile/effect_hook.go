package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/plan"
	"podd/reconcile/probe"
	"podd/reconcile/status"
	"podd/runtime"
)

// postStart makes the hook of a container that has just started. It takes as
// long as it takes: whoever gives it up cancels it.
func (e *Effects) postStart(ctx context.Context, s scene, a plan.PostStart) error {
	c, _, _ := findContainer(s.desired.Spec, a.Container)
	if c == nil || !plan.HasPostStart(c) {
		return fmt.Errorf("container %s has no postStart hook any more", a.Container)
	}
	return e.hook(ctx, a.ID, c.Lifecycle.PostStart, probe.Target{IP: s.address(s.desired, a.ID), Ports: c.Ports})
}

// preStop makes the hook that a container was made with, its manifest may be
// gone, and gives it what is left of the grace.
func (e *Effects) preStop(ctx context.Context, s scene, a plan.PreStop) error {
	inc, c := findRecord(s.observed, a.ID)
	if c == nil {
		return nil // gone, as was wanted
	}
	h := plan.PreStopOf(c)
	if h == nil {
		return nil
	}
	to := probe.Target{Timeout: a.Grace}
	ips := inc.IPs
	if len(ips) == 0 { // on the node's network
		ips = s.node.HostIPs
	}
	if first := status.OnePerFamily(ips, s.node.HostIPs); len(first) > 0 {
		to.IP = first[0]
	}
	if text := c.Annotations[runtime.AnnotationContainerPorts]; text != "" {
		// Without them a port by name is not found, which is then told.
		_ = json.Unmarshal([]byte(text), &to.Ports)
	}
	return e.hook(ctx, a.ID, h, to)
}

// hook makes a hook once. A command is run as it stands: unlike a probe's, no
// $(NAME) in it is expanded.
func (e *Effects) hook(ctx context.Context, id string, h *v1.LifecycleHandler, to probe.Target) error {
	if h.Exec == nil {
		return probe.Call(ctx, h, to)
	}
	r, err := e.exec(ctx, id, h.Exec.Command, to.Timeout)
	if err == nil && !r.Passed {
		err = errors.New(r.Message)
	}
	return err
}

func findRecord(observed []runtime.Incarnation, id string) (*runtime.Incarnation, *runtime.Container) {
	for i := range observed {
		for j := range observed[i].Containers {
			if c := &observed[i].Containers[j]; c.ID == id {
				return &observed[i], c
			}
		}
	}
	return nil, nil
}
