package reconcile

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/device"
	"podd/reconcile/device/allocation"
)

// A DeviceManager manages the devices of device plugins, as a *device.Manager does. Its methods do
// not block.
type DeviceManager interface {
	// HasAllocations reports whether devices are allocated to any pod, or are being allocated.
	HasAllocations() bool
	// SetHolders sets which pods may have devices. If complete is true, the devices of all
	// other pods are released.
	SetHolders(holders map[allocation.PodVersion]allocation.IDs, complete bool)
	// Counts returns the available devices by resource.
	Counts() map[v1.ResourceName]allocation.Count
	// AwaitsPlugins reports whether plugins of resources that Counts does not contain may register
	// soon.
	AwaitsPlugins() bool
	// UnhealthyDevices returns the devices that their plugins report as unhealthy.
	UnhealthyDevices() allocation.UnhealthyDevices
}

var _ DeviceManager = (*device.Manager)(nil)

// setDeviceHolders sets which pods may hold devices, updates r.unhealthyDevices, and returns the
// available devices. Until r.allWorkersReported is set, no pod loses devices, because a worker may
// not have reported its devices yet.
func (r *Router) setDeviceHolders() map[v1.ResourceName]allocation.Count {
	if r.o.Devices.HasAllocations() || r.hasObservedDeviceUse() { // on most nodes no devices are allocated, so that there are no holders to find
		holders := map[allocation.PodVersion]allocation.IDs{}
		for key, e := range r.entries {
			n := e.nameFacts(key, r.observed[key])
			maps.Copy(holders, n.DeviceAllocations())
		}
		r.o.Devices.SetHolders(holders, r.allWorkersReported)
	}
	r.devices = r.o.Devices.Counts()
	if u := r.o.Devices.UnhealthyDevices(); r.unhealthyDevices == nil || !maps.EqualFunc(u, *r.unhealthyDevices, slices.Equal) {
		r.unhealthyDevices = &u
	}
	return r.devices
}

// hasObservedDeviceUse reports whether a container was observed to have devices.
func (r *Router) hasObservedDeviceUse() bool {
	for key, e := range r.entries {
		if n := e.nameFacts(key, r.observed[key]); n.HasRecordedDevices() {
			return true
		}
	}
	return false
}
