package reconcile

import (
	"maps"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/device"
	"podd/reconcile/device/allocation"
)

// DeviceLedger manages the devices of device plugins, as a *device.Ledger does. Its methods do
// not block.
type DeviceLedger interface {
	// Held reports whether any pod holds devices.
	Held() bool
	// Hold sets which pods may hold devices. If whole is set, all other pods lose their
	// devices.
	Hold(holders map[allocation.PodVersion]allocation.IDs, whole bool)
	// Counts returns the available devices by resource.
	Counts() map[v1.ResourceName]allocation.Count
}

var _ DeviceLedger = (*device.Ledger)(nil)

// holdDevices sets which pods may hold devices, and returns the available devices. Until
// every worker has reported on its first observation, no pod loses devices.
func (r *Router) holdDevices() map[v1.ResourceName]allocation.Count {
	if r.o.Devices.Held() || r.observesDevices() { // most nodes have no devices
		holders := map[allocation.PodVersion]allocation.IDs{}
		for key, e := range r.entries {
			n := e.name(key, r.observed[key])
			maps.Copy(holders, n.DeviceAllocations())
		}
		r.o.Devices.Hold(holders, r.started)
	}
	r.devices = r.o.Devices.Counts()
	return r.devices
}

// observesDevices reports whether a container was observed to have devices.
func (r *Router) observesDevices() bool {
	for key, e := range r.entries {
		if n := e.name(key, r.observed[key]); n.HasRecordedDevices() {
			return true
		}
	}
	return false
}
