package plan

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// Devices are those of one extended resource.
type Devices struct {
	// Total is how many there are to be had: those that are healthy, and those
	// that pods have, whatever became of them.
	Total int64
	// Served says that a plugin lists them now.
	Served bool
}

// noDevices is Kubernetes' word for a pod rejected for want of devices.
const noDevices = "UnexpectedAdmissionError"

// withDevices are the amounts of a node beside its devices.
func (l Limits) withDevices() Amounts {
	if len(l.Devices) == 0 {
		return l.Amounts
	}
	all := maps.Clone(l.Amounts)
	if all == nil {
		all = Amounts{}
	}
	for name, d := range l.Devices {
		all[name] = d.Total
	}
	return all
}

// admitDevices keeps back what asks for devices that no plugin serves: on a machine
// that boots plugins come late, as pods even. What has its devices keeps them, and
// what runs is not ended for a version that could have none.
func (l Limits) admitDevices(c Claimant) Verdict {
	if l.DevicesUnknown {
		return Verdict{}
	}
	wants := manifest.PodRequests(&c.Wants.Spec.Spec)
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		n := wants[name]
		if !manifest.IsExtended(name) || n.Sign() <= 0 {
			continue
		}
		answer := Wait
		if _, known := l.Devices[name]; !known && ofCluster(c.Wants) {
			continue // the cluster counts it, or a driver beside the node does
		}
		switch {
		case l.Devices == nil:
			return Verdict{Answer: Reject, Reason: noDevices, Never: true, Message: fmt.Sprintf("it asks for %s, and no device plugin is served here; podd run without --runonce serves them", name)}
		case l.Devices[name].Served || slices.ContainsFunc(c.Holds, func(p *manifest.Pod) bool { return p.UID == c.Wants.UID && p.Hash == c.Wants.Hash }):
			continue
		case len(c.Holds) > 0:
			answer = Reject
		}
		return Verdict{Answer: answer, Reason: noDevices, Message: fmt.Sprintf("it asks for %s of %s, which no device plugin serves now; it starts when one registers", text(name, amountOf(name, n)), name)}
	}
	return Verdict{}
}

// reasonOf a pod that there is not enough of a resource for.
func reasonOf(name v1.ResourceName) string {
	if manifest.IsExtended(name) {
		return noDevices
	}
	return "OutOf" + string(name)
}
