package admission

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
)

// noDevicesReason is the kubelet's reason for a pod that is rejected because devices are missing.
const noDevicesReason = "UnexpectedAdmissionError"

// amountsWithDevices returns l.Allocatable together with the total number of devices of each
// resource.
func (l Limits) amountsWithDevices() Amounts {
	if len(l.Devices) == 0 {
		return l.Allocatable
	}
	amounts := maps.Clone(l.Allocatable)
	if amounts == nil {
		amounts = Amounts{}
	}
	for name, d := range l.Devices {
		amounts[name] = d.Total
	}
	return amounts
}

// admitDevices returns Wait while no plugin serves the devices that the desired version requests.
// Plugins start late after a boot, and a plugin may itself run in a pod. A version that was
// admitted before keeps its devices. If an earlier version of the pod runs, the verdict is Reject,
// so that the earlier version is not stopped.
//
// As in a kubelet, a pod of a cluster is rejected if no device is healthy and no plugin is awaited. The
// cluster can replace the pod by a pod on another node.
func (l Limits) admitDevices(c candidate) plan.Verdict {
	if l.DevicesUnknown {
		return plan.Verdict{}
	}
	requests := manifest.PodRequests(c.Desired.Object)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		n := requests[name]
		if !manifest.IsExtendedResource(name) || n.Sign() <= 0 {
			continue
		}
		answer := plan.Wait
		devices, isProvided := l.Devices[name]
		switch {
		case !isProvided && c.traits().FailsIfRejected && !l.AwaitsPlugins:
			continue // no device plugin provides the resource, so another component counts it for the pods of the cluster
		case isProvided && c.traits().FailsIfRejected && !devices.IsAwaited && devices.Healthy == 0:
			return plan.Verdict{Answer: plan.Reject, Reason: noDevicesReason, Message: fmt.Sprintf("Allocate failed due to no healthy devices present; cannot allocate unhealthy devices %s, which is unexpected", name)}
		case devices.IsServed || slices.ContainsFunc(c.ReservedVersions, func(p *manifest.Pod) bool { return p.UID == c.Desired.UID && p.Hash == c.Desired.Hash }):
			continue
		case len(c.ReservedVersions) > 0 && !c.traits().FailsIfRejected:
			answer = plan.Reject
		}
		return plan.Verdict{Answer: answer, Reason: noDevicesReason, Message: fmt.Sprintf("the pod requests %s of %s, which no device plugin provides now; the pod starts when such a plugin registers", formatAmount(name, amountOf(name, n)), name)}
	}
	return plan.Verdict{}
}

// rejectInsufficient returns Reject with the kubelet's reason for a resource that is insufficient, but
// without a message.
func rejectInsufficient(name v1.ResourceName) plan.Verdict {
	if manifest.IsExtendedResource(name) {
		return plan.Verdict{Answer: plan.Reject, Reason: noDevicesReason}
	}
	return plan.Verdict{Answer: plan.Reject, Reason: "OutOf" + string(name), Insufficient: name}
}
