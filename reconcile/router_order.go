package reconcile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

// orderAll gives every worker whose order changed its new one.
func (r *Router) orderAll() {
	r.claimed = false
	verdicts := r.admit()
	for key, e := range r.entries {
		r.order(key, e, verdicts[key])
	}
	r.preempt(verdicts)
}

// preempt ends those that are to give way to others.
func (r *Router) preempt(verdicts map[types.NamespacedName]plan.Verdict) {
	for _, v := range verdicts {
		e := r.entries[v.Preempts]
		if e == nil || e.order.desired == nil || e.preempts == e.order.desired.UID {
			continue
		}
		o := e.order
		e.preempts = o.desired.UID
		o.seen, o.pod, o.evict = false, nil, &plan.Evict{UID: o.desired.UID, Reason: plan.Preempted, Message: "Preempted in order to admit critical pod"}
		r.post(e, o)
	}
}

// orderOther gives new orders to those whose verdict has another answer, not other
// words.
func (r *Router) orderOther() {
	verdicts := r.admit()
	for key, e := range r.entries {
		if verdicts[key].Answer != e.order.verdict.Answer {
			r.order(key, e, verdicts[key])
		}
	}
}

func (r *Router) order(key types.NamespacedName, e *entry, v plan.Verdict) {
	o, was := r.compose(key, e, v), e.order
	if was.seq > 0 && was.desired == o.desired && was.certain == o.certain && was.verdict == o.verdict &&
		was.supply == o.supply && was.earlier == o.earlier && was.earlierSupply == o.earlierSupply && was.node == o.node && was.runtime == o.runtime && was.render == o.render && was.hurry == o.hurry && was.deletes == o.deletes && was.leaving == o.leaving && was.userIDs == o.userIDs && was.drivers == o.drivers {
		return
	}
	if was.seq == 0 && r.seen {
		// The newest look at the runtime counts for a name that is new.
		o.seen, o.stale, o.pod, o.asOf = true, o.desired != nil, r.last[key], r.asOf
	}
	r.post(e, o)
}

// compose is the order for one name as things stand, without an observation.
func (r *Router) compose(key types.NamespacedName, e *entry, v plan.Verdict) order {
	e.unasked(r.wanted(key))
	leaving := r.leaving(key)
	if leaving != nil {
		e.ends(leaving.UID, leaving.Deletion.Grace, time.Now())
	}
	o := order{
		seq: e.order.seq, desired: r.wanted(key), verdict: v, leaving: leaving,
		node: r.planNode(), runtime: r.node.Name, render: r.render, hurry: r.hurry, deletes: e.deletes, drivers: r.drivers,
	}
	if o.desired != nil {
		e.kind, e.source = o.desired.Origin.Kind, o.desired.Origin.Source
		// Who holds what is not known before the runtime was seen.
		if v.Answer == plan.Admit && r.seen {
			e.admit(o.desired)
		}
	}
	o.userIDs = r.userIDs(key, e, o.desired)
	r.supply(key, e, &o)
	o.certain = o.desired == nil && r.unwanted(key, e)
	return o
}

// supply adds what the objects beside a pod hold for the wanted version, and for
// an earlier one that is still in force: its files follow them, too, unless a
// change of them is what it is to be replaced for.
func (r *Router) supply(key types.NamespacedName, e *entry, o *order) {
	if r.bound == nil || o.desired == nil {
		return
	}
	o.supply = r.bound.Supplies[key]
	if e.report == nil || e.report.Version == nil {
		return
	}
	if v := e.report.Version; sameVersion(v, o.desired) {
		if len(v.Spec.Spec.EphemeralContainers) > 0 { // these read objects, too
			o.supply = manifest.SupplyOf(v, r.set, r.o.Render.Instance, e.order.supply)
		}
		return
	}
	o.earlier = e.report.Version
	if manifest.RestartsOnChange(o.earlier) {
		o.earlier = nil
		return
	}
	o.earlierSupply = manifest.SupplyOf(o.earlier, r.set, r.o.Render.Instance, e.order.earlierSupply)
}

func (r *Router) post(e *entry, o order) {
	o.seq = e.order.seq + 1
	if o.seen && e.shown == 0 {
		e.shown = o.seq
	}
	e.worker.post(o)
	e.order = o
	e.order.restart, e.order.evict, e.order.added = nil, nil, nil // are asked for once
}

func (r *Router) wanted(key types.NamespacedName) *manifest.Pod {
	if r.set == nil || r.down {
		return nil
	}
	return r.set.Pods[key]
}

// leaving is what the source of a name has and wants ended; nil for none. One that is
// not there is not made an entry for.
func (r *Router) leaving(key types.NamespacedName) *manifest.Pod {
	if r.set == nil {
		return nil
	}
	return r.set.Leaving[key]
}

// unwanted tells whether the end of what is here by a name that is not in the set is
// wanted. What a source says of the end of its own pod is not of another's by that
// name, whose source may not have spoken yet.
func (r *Router) unwanted(key types.NamespacedName, e *entry) bool {
	if r.certain(e) {
		return true
	}
	p := r.leaving(key)
	return r.seen && p != nil && !hasOther(r.last[key], p.UID)
}

// hasOther: something of ours by that name is of another UID.
func hasOther(p *runtime.Pod, uid types.UID) bool {
	return p != nil && slices.ContainsFunc(p.Incarnations, func(inc runtime.Incarnation) bool { return !inc.Foreign && inc.UID != uid })
}

// certain tells whether the absence of a pod from the set is a fact: the
// source that had it was seen whole or, when nobody knows which that was,
// every source of its kind.
func (r *Router) certain(e *entry) bool {
	if r.down {
		return true
	}
	if r.set == nil || !r.seen {
		return false
	}
	if kind, configured := r.o.SourceKinds[e.source]; configured && kind == e.kind {
		return r.set.Complete[e.source]
	}
	kind := e.kind
	if kind == "" {
		kind = sourceKind(e)
	}
	return complete(r.set, r.o.SourceKinds, kind)
}

// sourceKind is what a sandbox says of where its pod came from.
func sourceKind(e *entry) string {
	if e.report == nil {
		return ""
	}
	return kindOf(e.report.Observed)
}

func (r *Router) planNode() plan.Node {
	n := planNode(r.node, r.o.Adopt, r.o.MaxBackoff)
	n.Reachable, n.ShuttingDown = n.Reachable && r.seen, r.shutdown != nil
	if n.Message == "" && !n.Reachable {
		n.Message = "the runtime was not reached yet"
	}
	return n
}

func (r *Router) admit() map[types.NamespacedName]plan.Verdict {
	claimants := make([]plan.Claimant, 0, len(r.entries))
	for key, e := range r.entries {
		wants := r.wanted(key)
		claimants = append(claimants, e.claimant(key, wants, r.last[key], wants == nil && r.unwanted(key, e)))
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
	limits.Single = manifest.SingleClaims(r.set)
	verdicts := plan.Admission(claimants, limits)
	for key, v := range verdicts {
		// For a cluster's pod this is the end, also for one that is to give way, and
		// what others hold is not known yet.
		if r.started {
			break
		}
		if v.Preempts = (types.NamespacedName{}); v.Answer == plan.Reject && ofCluster(r.wanted(key)) {
			v.Answer = plan.Wait
		}
		verdicts[key] = v
	}
	return verdicts
}
