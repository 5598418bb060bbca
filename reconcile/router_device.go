package reconcile

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/manifest"
	"podd/reconcile/device"
	"podd/reconcile/plan"
	"podd/runtime"
)

// Holdings knows which devices there are and who has them, as a *device.Ledger
// does. Its methods wait for nothing.
type Holdings interface {
	// Held is whether anybody has devices.
	Held() bool
	Hold(holders map[device.Holder]device.Held, whole bool)
	Counts() map[v1.ResourceName]plan.Devices
}

var _ Holdings = (*device.Ledger)(nil)

// holdDevices tells who may have devices, and returns how many there are then.
// Before every worker has told what it makes of this machine, nobody loses any.
func (r *Router) holdDevices() map[v1.ResourceName]plan.Devices {
	if r.o.Devices.Held() || r.seesDevices() { // on most machines nothing is to be told
		holders := map[device.Holder]device.Held{}
		for key, e := range r.entries {
			e.addHolders(key, r.last[key], holders)
		}
		r.o.Devices.Hold(holders, r.started)
	}
	r.devices = r.o.Devices.Counts()
	return r.devices
}

// seesDevices is whether a container is seen to have some.
func (r *Router) seesDevices() bool {
	for key, e := range r.entries {
		observed := e.observed(r.last[key])
		for i := range observed {
			if device.Sees(&observed[i]) {
				return true
			}
		}
	}
	return false
}

// observed is what was last seen of a name.
func (e *entry) observed(last *runtime.Pod) []runtime.Incarnation {
	switch {
	case e.report != nil:
		return e.report.Observed
	case last != nil:
		return last.Incarnations
	}
	return nil
}

// addHolders adds the versions of a name that may have devices: what was admitted
// and has not run to its end, and what is seen to run.
func (e *entry) addHolders(key types.NamespacedName, last *runtime.Pod, holders map[device.Holder]device.Held) {
	observed := e.observed(last)
	for _, list := range [][]*manifest.Pod{e.admitted, e.holds} {
		for _, p := range list {
			if e.report == nil || !e.rests() || !sameVersion(p, e.report.Version) {
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

// devicesOf is how many devices an incarnation has of each resource; its containers
// may have the same.
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
