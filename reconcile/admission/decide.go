package admission

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/order"
	"podd/manifest/refs"
	"podd/reconcile/device/allocation"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/state"
	"podd/runtime"
)

// An Input contains all facts on which Decide depends.
type Input struct {
	// Set contains the desired pods; nil until the first set is received. Refs contains the objects
	// that each pod refers to. InstanceID is the instance ID that refs.Resolve requires.
	Set        *manifest.Set
	Refs       map[types.NamespacedName]*refs.Resolved
	InstanceID string
	// SourceKinds maps the name of every configured source to its kind.
	SourceKinds map[string]string
	// EarlierNodeNames contains earlier names of the node. A running pod whose name ends with one
	// of them must stop before the pod from the same manifest starts under the current name of the
	// node.
	EarlierNodeNames []string
	// Observed contains the pods that the runtime lists, including pods of other agents.
	Observed map[types.NamespacedName]*runtime.Pod
	// HasSnapshot reports whether the runtime was observed. AllWorkersReported reports whether
	// every worker has reported on its first observation of the runtime.
	HasSnapshot, AllWorkersReported bool
	// StopAllReason is the reason why every pod is stopped; "" if this was not requested. If
	// ForceStop is true, pods that are being stopped get no grace period.
	StopAllReason string
	ForceStop     bool
	Limits        Limits
	// PlanNode, RuntimeName, RenderNode, DriverChanges and UnhealthyDevices are copied into every
	// order.
	PlanNode      plan.Node
	RuntimeName   string
	RenderNode    *render.Node
	DriverChanges uint64

	UnhealthyDevices *allocation.UnhealthyDevices
}

// A WorkerRequest contains the requests to send to the worker of one pod name.
type WorkerRequest struct {
	Key      types.NamespacedName
	Requests state.Requests
}

// Decide returns the new memory of every name, and a request to evict each preempted pod. A memory
// contains the order for the worker of its name.
func Decide(in Input, names []NameFacts, now time.Time) (memories map[types.NamespacedName]Memory, evictions []WorkerRequest) {
	d := decider{in: &in, names: names, now: now}
	verdicts := d.admit()
	memories = make(map[types.NamespacedName]Memory, len(names))
	for i := range names {
		memories[names[i].Key] = d.newMemory(&names[i], verdicts[names[i].Key])
	}
	return memories, d.preempt(memories, verdicts)
}

// A decider contains the data of one call of Decide.
type decider struct {
	in          *Input
	names       []NameFacts
	now         time.Time
	usedUserIDs []runtime.IDRange // host IDs of user namespaces in use, sorted; nil until listUserIDs fills it
}

// admit returns the verdict of every name with a desired version.
func (d *decider) admit() map[types.NamespacedName]plan.Verdict {
	in := d.in
	candidates := make([]candidate, 0, len(d.names))
	for i := range d.names {
		name := &d.names[i]
		desired := in.desired(name.Key)
		c := name.newCandidate(desired, desired == nil && in.isRemoved(name))
		c.EarlierNames = in.earlierNames(desired)
		candidates = append(candidates, c)
	}
	verdicts := admitAll(candidates, in.Limits)
	if in.AllWorkersReported {
		return verdicts
	}
	for key, v := range verdicts {
		// Until the reservations of all pods are known, do not reject or preempt a pod of a
		// cluster, because such a pod would fail permanently.
		if v.Victim = (types.NamespacedName{}); v.Answer == plan.Reject && in.desired(key).Traits.FailsIfRejected {
			v.Answer = plan.Wait
		}
		verdicts[key] = v
	}
	return verdicts
}

// newMemory returns the new memory of a name with verdict v.
func (d *decider) newMemory(name *NameFacts, v plan.Verdict) Memory {
	in, m := d.in, name.Memory
	desired, terminating := in.desired(name.Key), in.terminatingPod(name.Key)
	m.clearDeletion(desired)
	if terminating != nil {
		m.setDeletion(terminating.UID, terminating.Deletion.GracePeriod, d.now)
	}
	if desired != nil {
		m.sourceKind, m.sourceName = desired.Origin.Kind, desired.Origin.Source
		// Before the first snapshot, the reservations of running pods are unknown. The verdict may
		// change, and the worker does not start the pod yet. So do not add the version to Admitted.
		if v.Answer == plan.Admit && in.HasSnapshot {
			m.addAdmitted(desired)
		}
	}
	o := state.Order{
		Desired: desired, Verdict: v, TerminatingPod: terminating, Deletion: m.Deletion, ForceStop: in.ForceStop, StopAllReason: in.StopAllReason,
		Node: in.PlanNode, RuntimeName: in.RuntimeName, RenderNode: in.RenderNode, DriverChanges: in.DriverChanges,
		UnhealthyDevices: in.UnhealthyDevices,
		UserIDs:          d.userIDs(name, desired),
	}
	d.addRefs(name, &o)
	current := *name
	current.Memory = m
	o.SourcesRead = desired == nil && in.isRemoved(&current)
	m.Order = o
	return m
}

// addRefs adds to o the objects that the desired version refers to. While an earlier version is in
// force, addRefs also adds the objects of the earlier version, so that the files in its volumes are
// updated. This does not apply to an earlier version with AnnotationRestartOnChange, because a
// change of its files would require a restart of the pod.
func (d *decider) addRefs(name *NameFacts, o *state.Order) {
	if d.in.Refs == nil || o.Desired == nil {
		return
	}
	o.Refs = d.in.Refs[name.Key]
	if name.Report == nil || name.Report.Version == nil {
		return
	}
	oldOrder := &name.Order
	if v := name.Report.Version; state.EqualVersion(v, o.Desired) {
		if len(v.Object.Spec.EphemeralContainers) > 0 { // resolve the objects of ephemeral containers, which d.in.Refs does not contain
			o.Refs = refs.Resolve(v, d.in.Set, d.in.InstanceID, oldOrder.Refs)
		}
		return
	}
	o.Earlier = name.Report.Version
	if manifest.RestartsOnChange(o.Earlier) {
		o.Earlier = nil
		return
	}
	o.EarlierRefs = refs.Resolve(o.Earlier, d.in.Set, d.in.InstanceID, oldOrder.EarlierRefs)
}

// preempt returns eviction requests for the pods that the verdicts name as victims. It requests the
// eviction of each version only once, and records the version in memories. If a new version of a
// victim starts, it requires another request, because an eviction applies to one version only.
func (d *decider) preempt(memories map[types.NamespacedName]Memory, verdicts map[types.NamespacedName]plan.Verdict) (requests []WorkerRequest) {
	for _, v := range verdicts {
		if v.Victim == (types.NamespacedName{}) {
			continue
		}
		i := slices.IndexFunc(d.names, func(n NameFacts) bool { return n.Key == v.Victim })
		m, ok := memories[v.Victim]
		if i < 0 || !ok || m.Order.Desired == nil {
			continue
		}
		p := m.Order.Desired
		if r := d.names[i].Report; r != nil && r.Version != nil {
			p = r.Version // while an edit waits, the earlier version runs and must be evicted
		}
		if m.preempted != nil && state.EqualVersion(m.preempted, p) {
			continue
		}
		m.preempted = p
		memories[v.Victim] = m
		requests = append(requests, WorkerRequest{v.Victim, state.Requests{Eviction: &plan.Eviction{
			UID: p.UID, Hash: p.Hash, Reason: plan.ReasonPreempted, Message: "Preempted in order to admit critical pod", Resource: v.VictimResource,
		}}})
	}
	order.Slice(requests, func(a, b WorkerRequest) int { return manifest.CompareKeys(a.Key, b.Key) })
	return requests
}
