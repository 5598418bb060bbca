package admission

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"podd/manifest"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// nodePressureReason is the reason of a pod of a file or URL that waits for the end of node pressure.
const nodePressureReason = "NodePressure"

// checkPressure returns the verdict for a pod under the pressure conditions of the node. The rules
// are those of a kubelet (Admit in pkg/kubelet/eviction/eviction_manager.go). Critical pods are
// admitted. If memory pressure is the only condition, pods are also admitted if they are not
// BestEffort or tolerate the taint of memory pressure. A kubelet also admits every static pod, but
// in podd, a pod of a file or URL waits. An evicted pod waits until all conditions have ended,
// because its memory usage may have caused the pressure; a kubelet does not start it again. A
// version that was admitted before keeps running. While the conditions are unknown, all pods except
// critical ones wait.
func (l Limits) checkPressure(c candidate) plan.Verdict {
	if l.Pressure == (pressure.Conditions{}) && !l.PressureUnknown || pressure.IsProtected(c.Desired.Object) || c.wasAdmitted() && !c.WaitsForRestart {
		return plan.Verdict{}
	}
	if l.PressureUnknown {
		v := waitForPressure(c, "podd has not observed the resources of the node yet; the pod starts after the observation if the node has enough resources")
		v.IsPreliminary = true
		return v
	}
	if l.Pressure == (pressure.Conditions{Memory: true}) && !c.WaitsForRestart && mayRunUnderMemoryPressure(c.Desired.Object) {
		return plan.Verdict{}
	}
	if c.traits().FailsIfRejected {
		return plan.Verdict{Answer: plan.Reject, Reason: plan.ReasonEvicted, Message: fmt.Sprintf("The node had condition: %v. ", l.Pressure.Types())}
	}
	return waitForPressure(c, fmt.Sprintf("the node has the condition %v; the pod starts when the condition has ended", l.Pressure.Types()))
}

// waitForPressure returns the verdict for a pod that cannot start before the pressure conditions of
// the node have changed or are known.
func waitForPressure(c candidate, message string) plan.Verdict {
	v := plan.Verdict{Answer: plan.Wait, Reason: nodePressureReason, Message: message}
	if len(c.ReservedVersions) > 0 && !c.WaitsForRestart && !c.traits().FailsIfRejected { // an earlier version keeps running
		v.Answer = plan.Reject
	}
	return v
}

// wasAdmitted reports whether the desired version may already run.
func (c *candidate) wasAdmitted() bool {
	return slices.ContainsFunc(c.ReservedVersions, func(p *manifest.Pod) bool { return state.EqualVersion(p, c.Desired) })
}

// mayRunUnderMemoryPressure reports whether a pod is admitted although the node is under memory
// pressure.
func mayRunUnderMemoryPressure(pod *v1.Pod) bool {
	taint := v1.Taint{Key: v1.TaintNodeMemoryPressure, Effect: v1.TaintEffectNoSchedule}
	return manifest.QoS(pod) != v1.PodQOSBestEffort ||
		slices.ContainsFunc(pod.Spec.Tolerations, func(o v1.Toleration) bool { return o.ToleratesTaint(klog.Logger{}, &taint, true) })
}
