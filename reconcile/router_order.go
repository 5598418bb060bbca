package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/admission"
	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// orderPauseFactor is the pause after a call of postOrders, as a multiple of the duration of the
// call. During the pause, changed reservations do not cause another call. So these calls take at
// most a twentieth of the router's time. Without the pause, the removal of n pods could cause n
// calls of postOrders, and the duration of each call is proportional to the number of pods.
const orderPauseFactor = 19

// postOrdersIfDue calls postOrders if reservations have changed and the pause after the last call
// is over. During a node shutdown postOrdersIfDue does not wait for the pause, because the steps of
// a shutdown have deadlines.
func (r *Router) postOrdersIfDue() {
	if r.reservationsChanged && (r.shutdown != nil || !time.Now().Before(r.nextOrdersAt)) {
		r.postOrders()
	}
}

// ordersDueChannel returns a channel that receives a value when postOrdersIfDue must be called; nil
// if no reservation has changed.
func (r *Router) ordersDueChannel() <-chan time.Time {
	if !r.reservationsChanged {
		return nil
	}
	return time.After(time.Until(r.nextOrdersAt))
}

// postOrders admits all pods, and posts a new order to every worker with a changed order.
func (r *Router) postOrders() {
	begin := time.Now()
	defer func() { r.nextOrdersAt = time.Now().Add(orderPauseFactor * time.Since(begin)) }()
	r.reservationsChanged = false
	memories, requests := r.decideAdmission()
	for key, e := range r.entries {
		r.postOrder(key, e, memories[key])
	}
	for _, q := range requests {
		r.postRequests(r.entries[q.Key], q.Requests)
	}
}

// postChangedVerdicts admits all pods, and posts a new order to a worker if the Answer of its
// verdict has changed, or if its pod is preempted now. It posts no order if only the message of the
// verdict has changed.
func (r *Router) postChangedVerdicts() {
	memories, requests := r.decideAdmission()
	for key, e := range r.entries {
		if memories[key].Order.Verdict.Answer != e.memory.Order.Verdict.Answer {
			r.postOrder(key, e, memories[key])
		}
	}
	for _, q := range requests {
		e := r.entries[q.Key]
		r.postOrder(q.Key, e, memories[q.Key]) // also records the preemption in the memory
		r.postRequests(e, q.Requests)
	}
}

// decideAdmission returns the decision of package admission about every name.
func (r *Router) decideAdmission() (map[types.NamespacedName]admission.Memory, []admission.WorkerRequest) {
	names := make([]admission.NameFacts, 0, len(r.entries))
	for key, e := range r.entries {
		names = append(names, e.nameFacts(key, r.observed[key]))
	}
	return admission.Decide(r.admissionInput(), names, time.Now())
}

// admissionInput collects the facts on which admission depends.
func (r *Router) admissionInput() admission.Input {
	n := admission.Input{
		Set: r.desired.manifestSet(), InstanceID: r.o.RenderNode.InstanceID, SourceKinds: r.o.SourceKinds, EarlierNodeNames: r.o.EarlierNodeNames,
		Observed: r.observed, HasSnapshot: r.hasFullSnapshot, AllWorkersReported: r.allWorkersReported, StopAllReason: r.stopAll.reason, ForceStop: r.stopAll.force,
		Limits: r.o.Limits, PlanNode: r.newPlanNode(), RuntimeName: r.node.Name, RenderNode: r.renderNode, DriverChanges: r.driverChanges,
	}
	if r.o.Devices != nil {
		n.Limits.Devices, n.Limits.AwaitsPlugins = r.setDeviceHolders(), r.o.Devices.AwaitsPlugins()
		n.UnhealthyDevices = r.unhealthyDevices
	}
	n.Limits.Features.Runtime = r.node
	n.Limits.PressureUnknown = r.isPressureAwaited()
	n.Limits.ShuttingDown = r.shutdown != nil
	n.Limits.ReadWriteOncePod = refs.SinglePodClaims(n.Set)
	if r.desired == nil {
		return n
	}
	n.Refs = r.desired.Refs
	if apiNode := n.Set.Node; apiNode != nil {
		n.Limits.Features.Labels, n.Limits.Features.Taints = apiNode.Labels, apiNode.Taints
	}
	return n
}

// newPlanNode returns the facts about the node that package plan needs.
func (r *Router) newPlanNode() plan.Node {
	n := newPlanNode(r.node, r.o.AdoptKubeletPods, r.o.MaxBackoff, r.o.DeadContainers)
	n.RuntimeReachable, n.ShuttingDown = n.RuntimeReachable && r.hasFullSnapshot, r.shutdown != nil
	if n.RuntimeMessage == "" && !n.RuntimeReachable {
		n.RuntimeMessage = "the runtime has not responded yet"
	}
	return n
}

// postOrder stores memory, the newest admission.Memory of a name, in its entry e. It posts
// memory.Order to the worker, unless the worker already has this order.
func (r *Router) postOrder(key types.NamespacedName, e *workerEntry, memory admission.Memory) {
	hasOrder := e.seq > 0 && e.memory.Order == memory.Order
	if e.memory = memory; hasOrder {
		return
	}
	var q state.Requests
	if e.seq == 0 && r.hasFullSnapshot {
		// The first message to a worker includes the newest observation.
		q.Observation = &state.Observation{IsStale: memory.Order.Desired != nil, Pod: r.observed[key], AsOf: r.snapshotTime}
	}
	r.postRequests(e, q)
}

// postRequests posts requests to a worker, together with its current order.
func (r *Router) postRequests(e *workerEntry, q state.Requests) {
	r.post(e, workerMessage{requests: q})
}

// post sends a message to a worker, together with its current order.
func (r *Router) post(e *workerEntry, m workerMessage) {
	e.seq++
	m.seq, m.order = e.seq, e.memory.Order
	if o := m.requests.Observation; o != nil {
		e.observation = o.Pod
		if e.firstSeq == 0 {
			e.firstSeq = m.seq
		}
	}
	e.worker.post(m)
}

// desiredPod returns the desired pod of a name; nil if there is none, or if StopAll was called.
func (r *Router) desiredPod(key types.NamespacedName) *manifest.Pod {
	if r.desired == nil || r.stopAll.reason != "" {
		return nil
	}
	return r.desired.Set.Pods[key]
}
