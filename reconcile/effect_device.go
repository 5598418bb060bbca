package reconcile

import (
	"context"
	"fmt"

	"podd/manifest"
	"podd/reconcile/device"
	"podd/reconcile/render"
)

// useDevices has the pod's devices allocated, as a kubelet does when it admits a
// pod: before anything of it is made. done is to be called once what has them is
// made, or is not.
func (e *Effects) useDevices(ctx context.Context, p *manifest.Pod) (done func(), err error) {
	if e.Devices == nil {
		return func() {}, nil
	}
	_, done, err = e.Devices.Use(ctx, p, "")
	return done, err
}

// containerDevices are those of a container that is about to be made, ready for it.
func (e *Effects) containerDevices(ctx context.Context, s scene, container string) (given []render.Device, done func(), err error) {
	if e.Devices == nil {
		return nil, func() {}, nil
	}
	grants, done, err := e.Devices.Use(ctx, s.desired, container)
	if err != nil {
		return nil, nil, &startError{"CreateContainerConfigError", err}
	}
	err = e.Devices.PreStart(ctx, container, grants)
	for _, g := range grants {
		if n := len(g.Response.GetCdiDevices()); err == nil && n > 0 && !s.node.CDI {
			err = fmt.Errorf("giving %s to container %s: its plugin names CDI devices, which the runtime gives to no container; use containerd 1.7 or CRI-O 1.27, or newer, or set up the plugin to name none", g.Resource, container)
		}
		given = append(given, render.Device{Resource: g.Resource, IDs: g.IDs, Response: g.Response})
	}
	if err != nil {
		done()
		return nil, nil, &startError{"CreateContainerConfigError", err}
	}
	return given, done, nil
}

var _ Devices = (*device.Ledger)(nil)
