package reconcile

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/manifest"
	"podd/reconcile/device"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
)

// Holdings manages the devices of device plugins, as a *device.Ledger does. Its methods do
// not block.
type Holdings interface {
	// Held reports whether any pod holds devices.
	Held() bool
	Hold(holders map[device.Holder]device.Held, whole bool)
	Counts() map[v1.ResourceName]plan.Devices
}

var _ Holdings = (*device.Ledger)(nil)

// holdDevices sets which pods may hold devices, and returns the available ones. Until every
// worker has reported its first observation, no pod loses any.
func (r *Router) holdDevices() map[v1.ResourceName]plan.Devices {
	if r.o.Devices.Held() || r.observesDevices() { // most nodes have no devices
		holders := map[device.Holder]device.Held{}
		for key, e := range r.entries {
			e.addHolders(key, r.observed[key], holders)
		}
		r.o.Devices.Hold(holders, r.started)
	}
	r.devices = r.o.Devices.Counts()
	return r.devices
}

// observesDevices reports whether a container was observed to have devices.
func (r *Router) observesDevices() bool {
	for key, e := range r.entries {
		observed := e.observed(r.observed[key])
		for i := range observed {
			if device.Sees(&observed[i]) {
				return true
			}
		}
	}
	return false
}

// observed returns the incarnations of a name as last observed.
func (e *entry) observed(last *runtime.Pod) []runtime.Incarnation {
	switch {
	case e.report != nil:
		return e.report.Observed
	case last != nil:
		return last.Incarnations
	}
	return nil
}

// addHolders adds the versions of a name that may hold devices: those that were admitted
// and have not finished, and those that are observed to run.
func (e *entry) addHolders(key types.NamespacedName, last *runtime.Pod, holders map[device.Holder]device.Held) {
	observed := e.observed(last)
	for _, list := range [][]*manifest.Pod{e.admitted, e.holds} {
		for _, p := range list {
			if e.report == nil || !e.isFinished() || !state.SameVersion(p, e.report.Version) {
				holders[device.Holder{Key: key, UID: p.UID, Hash: p.Hash}] = nil
			}
		}
	}
	for i := range observed {
		if inc := &observed[i]; !inc.Foreign && plan.Live(inc) {
			h := device.Holder{Key: key, UID: inc.UID, Hash: inc.Annotations[runtime.AnnotationHash]}
			holders[h] = device.Seen(inc)
		}
	}
}

// devicesOf returns how many devices of each resource an incarnation has. Its containers
// may share them.
func devicesOf(inc *runtime.Incarnation) v1.ResourceList {
	all := map[string]sets.Set[string]{}
	for _, resources := range device.Seen(inc) {
		for name, ids := range resources {
			if all[name] == nil {
				all[name] = sets.New[string]()
			}
			all[name].Insert(ids...)
		}
	}
	list := v1.ResourceList{}
	for name, ids := range all {
		list[v1.ResourceName(name)] = *resource.NewQuantity(int64(ids.Len()), resource.DecimalSI)
	}
	return list
}
