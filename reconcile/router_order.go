package reconcile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/plan"
	"podd/runtime"
)

// orderAll posts a new order to every worker if its order changed.
func (r *Router) orderAll() {
	r.reservationsChanged = false
	verdicts := r.admit()
	for key, e := range r.entries {
		r.order(key, e, verdicts[key])
	}
	r.preempt(verdicts)
}

// preempt evicts the pods that must give way to critical ones.
func (r *Router) preempt(verdicts map[types.NamespacedName]plan.Verdict) {
	for _, v := range verdicts {
		e := r.entries[v.Preempts]
		if e == nil || e.order.desired == nil || e.preempted == e.order.desired.UID {
			continue
		}
		o := e.order
		e.preempted = o.desired.UID
		o.observed, o.pod, o.evict = false, nil, &plan.Eviction{UID: o.desired.UID, Hash: o.desired.Hash, Reason: plan.Preempted, Message: "Preempted in order to admit critical pod"}
		r.post(e, o)
	}
}

// orderChangedAnswers posts new orders to the workers with another answer in their verdict.
// A new message alone is not posted.
func (r *Router) orderChangedAnswers() {
	verdicts := r.admit()
	for key, e := range r.entries {
		if verdicts[key].Answer != e.order.verdict.Answer {
			r.order(key, e, verdicts[key])
		}
	}
}

// order posts a new order to the worker of a name if it differs from the previous one.
func (r *Router) order(key types.NamespacedName, e *entry, v plan.Verdict) {
	o, was := r.buildOrder(key, e, v), e.order
	if was.seq > 0 && was.desired == o.desired && was.certain == o.certain && was.verdict == o.verdict &&
		was.supply == o.supply && was.earlier == o.earlier && was.earlierSupply == o.earlierSupply && was.node == o.node && was.runtimeName == o.runtimeName && was.render == o.render && was.forceStop == o.forceStop && was.deletion == o.deletion && was.leaving == o.leaving && was.userIDs == o.userIDs && was.driverChanges == o.driverChanges {
		return
	}
	if was.seq == 0 && r.hasSnapshot {
		// A new name gets the newest observation.
		o.observed, o.stale, o.pod, o.asOf = true, o.desired != nil, r.observed[key], r.asOf
	}
	r.post(e, o)
}

// buildOrder returns the present order for one name, without an observation.
func (r *Router) buildOrder(key types.NamespacedName, e *entry, v plan.Verdict) order {
	e.clearDeletion(r.desired(key))
	leaving := r.leaving(key)
	if leaving != nil {
		e.setDeletion(leaving.UID, leaving.Deletion.Grace, time.Now())
	}
	o := order{
		seq: e.order.seq, desired: r.desired(key), verdict: v, leaving: leaving,
		node: r.planNode(), runtimeName: r.node.Name, render: r.render, forceStop: r.forceStop, deletion: e.deletion, driverChanges: r.driverChanges,
	}
	if o.desired != nil {
		e.kind, e.source = o.desired.Origin.Kind, o.desired.Origin.Source
		// Reservations are not known before the runtime was observed.
		if v.Answer == plan.Admit && r.hasSnapshot {
			e.addAdmitted(o.desired)
		}
	}
	o.userIDs = r.userIDs(key, e, o.desired)
	r.addSupplies(key, e, &o)
	o.certain = o.desired == nil && r.isRemoved(key, e)
	return o
}

// addSupplies adds the objects of the desired version to an order, and those of an earlier
// version that is still in force. The files of that one are updated, too, unless it is to
// be replaced because they changed.
func (r *Router) addSupplies(key types.NamespacedName, e *entry, o *order) {
	if r.bound == nil || o.desired == nil {
		return
	}
	o.supply = r.bound.Refs[key]
	if e.report == nil || e.report.Version == nil {
		return
	}
	if v := e.report.Version; sameVersion(v, o.desired) {
		if len(v.Spec.Spec.EphemeralContainers) > 0 { // ephemeral containers read objects, too
			o.supply = refs.Resolve(v, r.set, r.o.Render.Instance, e.order.supply)
		}
		return
	}
	o.earlier = e.report.Version
	if manifest.RestartsOnChange(o.earlier) {
		o.earlier = nil
		return
	}
	o.earlierSupply = refs.Resolve(o.earlier, r.set, r.o.Render.Instance, e.order.earlierSupply)
}

// post sends an order to a worker.
func (r *Router) post(e *entry, o order) {
	o.seq = e.order.seq + 1
	if o.observed && e.firstSeq == 0 {
		e.firstSeq = o.seq
	}
	if o.observed {
		e.observation = o.pod
	}
	e.worker.post(o)
	e.order = o
	e.order.restart, e.order.evict, e.order.additions, e.order.reread = nil, nil, nil, nil // these are requested once only
}

// desired returns the desired pod of a name; nil if there is none or all pods stop.
func (r *Router) desired(key types.NamespacedName) *manifest.Pod {
	if r.set == nil || r.down {
		return nil
	}
	return r.set.Pods[key]
}

// leaving returns the pod of a name that its source reports as being deleted; nil if there
// is none. If nothing of it is on the node, it gets no entry.
func (r *Router) leaving(key types.NamespacedName) *manifest.Pod {
	if r.set == nil {
		return nil
	}
	return r.set.Leaving[key]
}

// isRemoved reports whether a pod that is not in the set must be stopped. If its source
// reports it as being deleted, that holds for its own UID only: the source of another pod
// with the same name may not have been read yet.
func (r *Router) isRemoved(key types.NamespacedName, e *entry) bool {
	if r.isAbsent(e) {
		return true
	}
	p := r.leaving(key)
	return r.hasSnapshot && p != nil && !hasOther(r.observed[key], p.UID)
}

// hasOther reports whether podd has incarnations of this name with another UID.
func hasOther(p *runtime.Pod, uid types.UID) bool {
	return p != nil && slices.ContainsFunc(p.Incarnations, func(inc runtime.Incarnation) bool { return !inc.Foreign && inc.UID != uid })
}

// isAbsent reports whether it is known that no source has the pod: the source that had it
// was read completely or, if it is not known which one that was, every source of its kind.
func (r *Router) isAbsent(e *entry) bool {
	if r.down {
		return true
	}
	if r.set == nil || !r.hasSnapshot {
		return false
	}
	if kind, configured := r.o.SourceKinds[e.source]; configured && kind == e.kind {
		return r.set.Complete[e.source]
	}
	kind := e.kind
	if kind == "" {
		kind = sourceKind(e)
	}
	return isComplete(r.set, r.o.SourceKinds, kind)
}

// sourceKind returns the kind of source that the sandboxes of a name record; "" if it is
// not known.
func sourceKind(e *entry) string {
	if e.report == nil {
		return ""
	}
	return kindOf(e.report.Observed)
}

// earlierNames returns the names that a pod had when the node had its earlier names.
func (r *Router) earlierNames(p *manifest.Pod) (names []types.NamespacedName) {
	if p == nil || p.Suffix == "" {
		return nil
	}
	for _, node := range r.o.EarlierNodes {
		name := p.Short()
		name.Name += "-" + node
		names = append(names, name)
	}
	return names
}

func (r *Router) planNode() plan.Node {
	n := planNode(r.node, r.o.Adopt, r.o.MaxBackoff)
	n.Reachable, n.ShuttingDown = n.Reachable && r.hasSnapshot, r.shutdown != nil
	if n.Message == "" && !n.Reachable {
		n.Message = "the runtime was not reached yet"
	}
	return n
}

// admit returns the admission verdict of every name.
func (r *Router) admit() map[types.NamespacedName]plan.Verdict {
	claimants := make([]plan.Claimant, 0, len(r.entries))
	for key, e := range r.entries {
		wants := r.desired(key)
		c := e.claimant(key, wants, r.observed[key], wants == nil && r.isRemoved(key, e))
		c.Earlier = r.earlierNames(wants)
		claimants = append(claimants, c)
	}
	limits := r.o.Limits
	if r.o.Devices != nil {
		limits.Devices = r.holdDevices()
	}
	limits.Machine.Runtime = r.node
	limits.ShuttingDown = r.shutdown != nil
	if r.set != nil && r.set.Node != nil {
		limits.Machine.Labels, limits.Machine.Taints = r.set.Node.Labels, r.set.Node.Taints
	}
	limits.Single = refs.SingleClaims(r.set)
	verdicts := plan.Admission(claimants, limits)
	for key, v := range verdicts {
		// A rejected pod of a cluster fails for good, and a preempted one, too. Neither may
		// happen while the reservations of other pods are not known yet.
		if r.started {
			break
		}
		if v.Preempts = (types.NamespacedName{}); v.Answer == plan.Reject && ofCluster(r.desired(key)) {
			v.Answer = plan.Wait
		}
		verdicts[key] = v
	}
	return verdicts
}
