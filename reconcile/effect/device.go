package effect

import (
	"context"
	"fmt"

	"podd/manifest"
	"podd/reconcile/device"
	"podd/reconcile/device/allocation"
	"podd/reconcile/render"
	"podd/reconcile/result"
)

// allocateDevices allocates the devices of a pod before its sandbox is created, as a kubelet does
// when it admits a pod. The caller must call done when creating the sandbox has succeeded
// or failed.
func (e *Runner) allocateDevices(ctx context.Context, p *manifest.Pod) (done func(), err error) {
	if e.Devices == nil {
		return func() {}, nil
	}
	_, done, err = e.Devices.Acquire(ctx, p, "")
	return done, err
}

// allocatedDevices returns the devices that are allocated to the containers of a pod, or nil if
// there are none.
func (e *Runner) allocatedDevices(p *manifest.Pod) allocation.IDs {
	if e.Devices == nil {
		return nil
	}
	return e.Devices.Allocated(p)
}

// prepareContainerDevices prepares and returns the devices of a container that is about to be
// created. The caller must call done when creating the container has succeeded or failed.
func (e *Runner) prepareContainerDevices(ctx context.Context, s Input, container string) (devices []render.DeviceGrant, done func(), err error) {
	if e.Devices == nil {
		return nil, func() {}, nil
	}
	grants, done, err := e.Devices.Acquire(ctx, s.Desired, container)
	if err != nil {
		return nil, nil, &result.StartError{Reason: "CreateContainerConfigError", Err: err}
	}
	err = e.Devices.PreStart(ctx, container, grants)
	for _, g := range grants {
		if n := len(g.Response.GetCdiDevices()); err == nil && n > 0 && !s.Node.SupportsCDI {
			err = fmt.Errorf("allocating %s for container %s: the device plugin uses CDI devices, which the runtime does not support; upgrade the runtime (minimum: containerd 1.7 or CRI-O 1.27), or configure the plugin not to use CDI", g.Resource, container)
		}
		devices = append(devices, render.DeviceGrant{Resource: g.Resource, IDs: g.IDs, Response: g.Response})
	}
	if err != nil {
		done()
		return nil, nil, &result.StartError{Reason: "CreateContainerConfigError", Err: err}
	}
	return devices, done, nil
}

var _ Devices = (*device.Manager)(nil)
