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

// orderPause is the pause after a call of orderAll, as a multiple of the duration of the call.
// During the pause, changed reservations do not cause another call. So these calls take at most a
// twentieth of the router's time. Without the pause, the removal of n pods would call orderAll up
// to n times, and each call takes time in proportion to the number of pods.
const orderPause = 19

// orderIfDue calls orderAll if reservations have changed and the pause after the last call is over.
// During a node shutdown orderIfDue does not wait for the pause, because the steps of a shutdown
// have deadlines.
func (r *Router) orderIfDue() {
	if r.reservationsChanged && (r.shutdown != nil || !time.Now().Before(r.nextOrder)) {
		r.orderAll()
	}
}

// orderDue returns a channel that receives a value when orderIfDue must be called; nil if no
// reservation has changed.
func (r *Router) orderDue() <-chan time.Time {
	if !r.reservationsChanged {
		return nil
	}
	return time.After(time.Until(r.nextOrder))
}

// orderAll admits all pods, and posts a new order to every worker with a changed order.
func (r *Router) orderAll() {
	begin := time.Now()
	defer func() { r.nextOrder = time.Now().Add(orderPause * time.Since(begin)) }()
	r.reservationsChanged = false
	memories, requests := r.decide()
	for key, e := range r.entries {
		r.order(key, e, memories[key])
	}
	for _, q := range requests {
		r.request(r.entries[q.Key], q.Requests)
	}
}

// orderChangedAnswers admits all pods, and posts a new order to each worker whose verdict has a
// different Answer. A verdict that differs only in its message is not posted.
func (r *Router) orderChangedAnswers() {
	memories, requests := r.decide()
	changed := map[types.NamespacedName]bool{}
	for key, e := range r.entries {
		if memories[key].Order.Verdict.Answer != e.memory.Order.Verdict.Answer {
			changed[key] = true
			r.order(key, e, memories[key])
		}
	}
	for _, q := range requests {
		if changed[q.Key] {
			r.request(r.entries[q.Key], q.Requests)
		}
	}
}

// decide returns the decision of package admission about every name.
func (r *Router) decide() (map[types.NamespacedName]admission.Memory, []admission.Request) {
	names := make([]admission.NameFacts, 0, len(r.entries))
	for key, e := range r.entries {
		names = append(names, e.name(key, r.observed[key]))
	}
	return admission.Decide(r.admissionNode(), names, time.Now())
}

// admissionNode returns the input of admission.
func (r *Router) admissionNode() admission.Input {
	n := admission.Input{
		Set: r.desired.set(), Instance: r.o.Render.Instance, SourceKinds: r.o.SourceKinds, EarlierNodes: r.o.EarlierNodes,
		Observed: r.observed, HasSnapshot: r.hasSnapshot, Started: r.started, Down: r.down, ForceStop: r.forceStop,
		Limits: r.o.Limits, Plan: r.planNode(), RuntimeName: r.node.Name, Render: r.render, DriverChanges: r.driverChanges,
	}
	if r.o.Devices != nil {
		n.Limits.Devices = r.holdDevices()
	}
	n.Limits.Features.Runtime = r.node
	n.Limits.ShuttingDown = r.shutdown != nil
	n.Limits.ReadWriteOncePod = refs.SingleClaims(n.Set)
	if r.desired == nil {
		return n
	}
	n.Refs = r.desired.Refs
	if own := n.Set.Node; own != nil {
		n.Limits.Features.Labels, n.Limits.Features.Taints = own.Labels, own.Taints
	}
	return n
}

// planNode returns the facts about the node that planning needs.
func (r *Router) planNode() plan.Node {
	n := planNode(r.node, r.o.Adopt, r.o.MaxBackoff)
	n.Reachable, n.ShuttingDown = n.Reachable && r.hasSnapshot, r.shutdown != nil
	if n.Message == "" && !n.Reachable {
		n.Message = "the runtime has not responded yet"
	}
	return n
}

// order sets the memory of a name to next, and posts the order in next unless the worker already
// has it.
func (r *Router) order(key types.NamespacedName, e *entry, next admission.Memory) {
	same := e.seq > 0 && e.memory.Order == next.Order
	if e.memory = next; same {
		return
	}
	var q state.Requests
	if e.seq == 0 && r.hasSnapshot {
		// The first message to a worker includes the newest observation.
		q.Observation = &state.Observation{Stale: next.Order.Desired != nil, Pod: r.observed[key], AsOf: r.asOf}
	}
	r.request(e, q)
}

// request posts requests with the present order to a worker.
func (r *Router) request(e *entry, q state.Requests) { r.post(e, message{requests: q}) }

// post sends a message with the present order to a worker.
func (r *Router) post(e *entry, m message) {
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

// desiredPod returns the desired pod of a name; nil if there is none, or if Down was called.
func (r *Router) desiredPod(key types.NamespacedName) *manifest.Pod {
	if r.desired == nil || r.down {
		return nil
	}
	return r.desired.Set.Pods[key]
}
