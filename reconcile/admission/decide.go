package admission

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/state"
	"podd/runtime"
)

// An Input contains the facts that Decide decides by, as of one moment.
type Input struct {
	// Set has the desired pods; nil before the first set. Refs has the objects of each, and
	// Instance is the argument of refs.Resolve.
	Set      *manifest.Set
	Refs     map[types.NamespacedName]*refs.Resolved
	Instance string
	// SourceKinds maps the name of every configured source to its kind.
	SourceKinds map[string]string
	// EarlierNodes are the earlier names of the node. A pod with a name that ends with one
	// of them stops before its successor starts.
	EarlierNodes []string
	// Observed has the pods of the runtime, also those of other agents. HasSnapshot reports
	// whether the runtime was observed, and Started whether every worker has reported, too.
	Observed             map[types.NamespacedName]*runtime.Pod
	HasSnapshot, Started bool
	// Down stops every pod, ForceStop without grace.
	Down, ForceStop bool
	Limits          Limits
	// Plan, RuntimeName, Render and DriverChanges are parts of every order.
	Plan          plan.Node
	RuntimeName   string
	Render        *render.Node
	DriverChanges uint64
}

// A Request is what the worker of a name must do once.
type Request struct {
	Key      types.NamespacedName
	Requests state.Requests
}

// Decide returns the memory of every name with its present order, and requests to stop the
// pods that must give way to critical ones.
func Decide(in Input, names []Name, now time.Time) (map[types.NamespacedName]Memory, []Request) {
	d := decider{in: &in, names: names, now: now}
	verdicts := d.admit()
	memories := make(map[types.NamespacedName]Memory, len(names))
	for i := range names {
		memories[names[i].Key] = d.order(&names[i], verdicts[names[i].Key])
	}
	return memories, d.preempt(memories, verdicts)
}

// decider is one call of Decide.
type decider struct {
	in    *Input
	names []Name
	now   time.Time
	taken map[uint32]bool // first IDs of user namespaces; nil until they are needed
}

// admit returns the admission verdict of every name.
func (d *decider) admit() map[types.NamespacedName]plan.Verdict {
	in := d.in
	candidates := make([]candidate, 0, len(d.names))
	for i := range d.names {
		name := &d.names[i]
		wants := in.desired(name.Key)
		c := name.candidate(wants, wants == nil && in.isRemoved(name))
		c.EarlierNames = in.earlierNames(wants)
		candidates = append(candidates, c)
	}
	verdicts := admitAll(candidates, in.Limits)
	if in.Started {
		return verdicts
	}
	for key, v := range verdicts {
		// A rejected pod of a cluster fails for good, and a preempted one, too. Neither may
		// happen while the reservations of other pods are not known yet.
		if v.Victim = (types.NamespacedName{}); v.Answer == plan.Reject && in.desired(key).Traits.FailsIfRejected {
			v.Answer = plan.Wait
		}
		verdicts[key] = v
	}
	return verdicts
}

// order returns the memory of a name with its order for a verdict.
func (d *decider) order(name *Name, v plan.Verdict) Memory {
	in, m := d.in, name.Memory
	desired, terminating := in.desired(name.Key), in.terminating(name.Key)
	m.clearDeletion(desired)
	if terminating != nil {
		m.setDeletion(terminating.UID, terminating.Deletion.Grace, d.now)
	}
	if desired != nil {
		m.kind, m.source = desired.Origin.Kind, desired.Origin.Source
		// Reservations are not known before the runtime was observed.
		if v.Answer == plan.Admit && in.HasSnapshot {
			m.addAdmitted(desired)
		}
	}
	o := state.Order{
		Desired: desired, Verdict: v, Terminating: terminating, Deletion: m.Deletion, ForceStop: in.ForceStop,
		Node: in.Plan, RuntimeName: in.RuntimeName, Render: in.Render, DriverChanges: in.DriverChanges,
		UserIDs: d.userIDs(name, desired),
	}
	d.addRefs(name, &o)
	present := *name
	present.Memory = m
	o.SourcesRead = desired == nil && in.isRemoved(&present)
	m.Order = o
	return m
}

// addRefs adds the objects of the desired version to an order, and those of an earlier
// version that is still in force. The files of that one are updated, too, unless it is to
// be replaced because they changed.
func (d *decider) addRefs(name *Name, o *state.Order) {
	if d.in.Refs == nil || o.Desired == nil {
		return
	}
	o.Refs = d.in.Refs[name.Key]
	if name.Report == nil || name.Report.Version == nil {
		return
	}
	before := &name.Order
	if v := name.Report.Version; state.EqualVersion(v, o.Desired) {
		if len(v.Spec.Spec.EphemeralContainers) > 0 { // ephemeral containers read objects, too
			o.Refs = refs.Resolve(v, d.in.Set, d.in.Instance, before.Refs)
		}
		return
	}
	o.Earlier = name.Report.Version
	if manifest.RestartsOnChange(o.Earlier) {
		o.Earlier = nil
		return
	}
	o.EarlierRefs = refs.Resolve(o.Earlier, d.in.Set, d.in.Instance, before.EarlierRefs)
}

// preempt returns the requests to evict the pods that must give way to critical ones, once
// for each version: an eviction does nothing if another version of the pod, even with the
// same UID, is in force. It records the versions in memories.
func (d *decider) preempt(memories map[types.NamespacedName]Memory, verdicts map[types.NamespacedName]plan.Verdict) (requests []Request) {
	for _, v := range verdicts {
		if v.Victim == (types.NamespacedName{}) {
			continue
		}
		at := slices.IndexFunc(d.names, func(n Name) bool { return n.Key == v.Victim })
		m, ok := memories[v.Victim]
		if at < 0 || !ok || m.Order.Desired == nil {
			continue
		}
		p := m.Order.Desired
		if r := d.names[at].Report; r != nil && r.Version != nil {
			p = r.Version // an edit may wait
		}
		if m.preempted != nil && state.EqualVersion(m.preempted, p) {
			continue
		}
		m.preempted = p
		memories[v.Victim] = m
		requests = append(requests, Request{v.Victim, state.Requests{Evict: &plan.Eviction{
			UID: p.UID, Hash: p.Hash, Reason: plan.Preempted, Message: "Preempted in order to admit critical pod",
		}}})
	}
	slices.SortFunc(requests, func(a, b Request) int { return manifest.CompareKeys(a.Key, b.Key) })
	return requests
}
