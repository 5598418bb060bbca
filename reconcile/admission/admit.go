package admission

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/device/allocation"
	"podd/reconcile/plan"
)

// A Claimant contains the reservations of one pod name.
type Claimant struct {
	Key types.NamespacedName
	// Wants is the newest desired version; nil if the pod is to be deleted.
	Wants *manifest.Pod
	// Holds contains the versions that may still run, including those that were admitted
	// and are being started.
	Holds []*manifest.Pod
	// UIDs contains the UIDs for which the name has a directory or sandbox on this node.
	UIDs []types.UID
	// Yields reports that reservations that are not desired any more are being released.
	// Otherwise a running version keeps them as long as it runs.
	Yields bool
	// Rests reports that the desired version has finished, so it reserves nothing.
	Rests bool
	// Ends reports that the desired version has finished and its reservations are being
	// released.
	Ends bool
	// Present reports that the name counts as one pod on the node.
	Present bool
	// Earlier contains the names of the same pod under earlier names of the node.
	Earlier []types.NamespacedName
	// Unconfirmed reports a pod of a cluster that has not confirmed yet whether it desires the
	// pod.
	Unconfirmed bool
}

// hasFinished reports whether the desired version has finished, so that nothing is kept.
func (c *Claimant) hasFinished() bool { return c.Rests || c.Ends }

// Limits are the limits of the node.
type Limits struct {
	MaxPods int // 0: no limit
	// Amounts limits the requests of all pods together. A resource that is not in it has no
	// limit.
	Amounts Amounts
	// Devices contains the number of plugin devices by resource; nil: device plugins are not
	// supported.
	Devices map[v1.ResourceName]allocation.Count
	// DevicesUnknown reports that Devices were not counted, so no pod waits for devices.
	DevicesUnknown bool
	Machine        Machine
	// ShuttingDown prevents the admission of pods that are not present yet.
	ShuttingDown bool
	// Single contains the claims that only one pod at a time may use.
	Single map[refs.ClaimRef]bool
}

// The reason and message of a pod that is rejected because of a node shutdown, as in a
// kubelet.
const (
	nodeShutdown    = "NodeShutdown"
	shutdownMessage = "Pod was rejected as the node is shutting down."
)

// binding is the reservation of a host port, with the ports that its pod desires.
type binding struct {
	manifest.PortReservation
	key   types.NamespacedName
	pod   *manifest.Pod
	keeps []manifest.PortReservation
}

// kept reports whether the pod still desires the port, or another reservation that
// conflicts with claim.
func (b *binding) kept(claim manifest.PortReservation) bool {
	return slices.ContainsFunc(b.keeps, claim.ConflictsWith)
}

// Admission returns a verdict for every claimant that desires a pod. Present pods come
// first, then the others ordered by name. A reservation is free once its holder is deleted;
// while the holder is being stopped, the verdict is Wait. If an edit of the holder is
// rejected, the holder is not stopped, which may reject others. Therefore the computation
// is repeated until nothing changes, at most once for each claimant.
func Admission(claimants []Claimant, limits Limits) map[types.NamespacedName]plan.Verdict {
	ordered := slices.Clone(claimants)
	slices.SortStableFunc(ordered, func(a, b Claimant) int {
		if a.Present != b.Present {
			if a.Present {
				return -1
			}
			return 1
		}
		return cmp.Or(madeAt(&a).Compare(madeAt(&b)), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	for {
		verdicts, again := admission(ordered, limits), false
		for i := range ordered {
			if c := &ordered[i]; c.Yields && c.Wants != nil && verdicts[c.Key].Answer == plan.Reject {
				c.Yields, again = false, true
			}
		}
		if !again {
			return verdicts
		}
	}
}

// ofCluster reports whether the pod comes from a cluster. p may be nil.
func ofCluster(p *manifest.Pod) bool { return p != nil && p.Origin.Kind == manifest.KindAPI }

// madeAt returns when the cluster created the desired pod, because pods of a cluster are
// ordered by that time, after all others.
func madeAt(c *Claimant) (at time.Time) {
	if ofCluster(c.Wants) {
		at = c.Wants.Spec.CreationTimestamp.Time
	}
	return at
}

// admissions contains the resources that are left for the claimants that follow.
type admissions struct {
	all    []Claimant
	limits Limits
	ports  portTable
	places *places
	shares *shares
	uids   uidTable
	claims claimTable
	going  removedTable
}

func admission(ordered []Claimant, limits Limits) map[types.NamespacedName]plan.Verdict {
	a := admissions{
		all: ordered, limits: limits, ports: heldPorts(ordered), places: countPlaces(ordered, limits),
		shares: heldShares(ordered, limits.withDevices()), uids: heldUIDs(ordered), claims: heldClaims(ordered, limits),
		going: removedNames(ordered),
	}
	verdicts := map[types.NamespacedName]plan.Verdict{}
	for _, c := range ordered {
		if c.Wants == nil {
			continue
		}
		switch {
		case c.Rests, c.Ends:
			verdicts[c.Key] = plan.Verdict{}
		case limits.ShuttingDown && !c.Present:
			verdicts[c.Key] = plan.Verdict{Answer: plan.Reject, Reason: nodeShutdown, Message: shutdownMessage}
		case ofCluster(c.Wants):
			verdicts[c.Key] = a.admitOfCluster(c)
		default:
			verdicts[c.Key] = a.admit(c)
		}
	}
	return verdicts
}

func (a *admissions) admit(c Claimant) plan.Verdict {
	places, taken := *a.places, a.shares.taken
	v := firstRefusal(
		func() plan.Verdict { return a.limits.Machine.admit(c.Wants) },
		func() plan.Verdict { return a.places.admit(c) },
		func() plan.Verdict { return a.limits.admitDevices(c) },
		func() plan.Verdict { return a.shares.admit(c) },
		func() plan.Verdict { return a.admitExclusive(c) },
	)
	if v.Answer == plan.Reject { // a rejected pod reserves nothing
		*a.places, a.shares.taken = places, taken
	}
	if v.Answer == plan.Reject && short(v.Reason) && !c.resizes() {
		v = a.makeRoom(c, v)
	}
	if v.Answer == plan.Admit {
		a.ports.take(c)
		a.claims.take(c)
	}
	return v
}

// admitExclusive checks the resources that only one pod at a time can have, if there is
// room for the pod.
func (a *admissions) admitExclusive(c Claimant) plan.Verdict {
	return firstRefusal(
		func() plan.Verdict { return a.ports.check(c) },
		func() plan.Verdict { return a.uids.admit(c) },
		func() plan.Verdict { return a.going.admit(c) },
		func() plan.Verdict { return a.claims.check(c) },
	)
}

// uidTable contains the holder of each UID.
type uidTable map[types.UID]types.NamespacedName

func heldUIDs(claimants []Claimant) uidTable {
	t := uidTable{}
	for _, c := range claimants {
		for _, uid := range c.UIDs {
			if c.Wants == nil || c.Wants.UID != uid {
				t[uid] = c.Key
			}
		}
	}
	return t
}

// admit makes a pod wait until nothing is left of another name that had its UID before an
// edit.
func (t uidTable) admit(c Claimant) plan.Verdict {
	holder, held := t[c.Wants.UID]
	if !held || holder == c.Key {
		return plan.Verdict{}
	}
	return plan.Verdict{Answer: plan.Wait, Reason: "UIDInUse", Message: fmt.Sprintf("metadata.uid %s is still used by %s, which is being stopped", c.Wants.UID, holder)}
}

// removedTable contains the names that are not desired any more and have left something on
// this node.
type removedTable map[types.NamespacedName]bool

func removedNames(claimants []Claimant) removedTable {
	t := removedTable{}
	for _, c := range claimants {
		if c.Wants == nil && (c.Present || len(c.UIDs) > 0) {
			t[c.Key] = true
		}
	}
	return t
}

// admit makes a pod wait for its own earlier incarnations if the node was renamed, because
// all have one manifest and must not run at the same time.
func (t removedTable) admit(c Claimant) plan.Verdict {
	for _, name := range c.Earlier {
		if t[name] {
			return plan.Verdict{Answer: plan.Wait, Reason: "NodeRenamed", Message: fmt.Sprintf("%s, this pod under an earlier name of the node, is being stopped", name)}
		}
	}
	return plan.Verdict{}
}

type portTable map[int32][]binding

// heldPorts returns the ports of all versions that may run.
func heldPorts(claimants []Claimant) portTable {
	t := portTable{}
	for _, c := range claimants {
		var keeps []manifest.PortReservation
		if !c.hasFinished() {
			keeps = manifest.PortReservations(c.Wants)
		}
		for _, held := range c.Holds {
			if !c.Yields && !c.hasFinished() {
				keeps = append(keeps, manifest.PortReservations(held)...)
			}
			t.add(c.Key, held, keeps)
		}
	}
	return t
}

func (t portTable) add(key types.NamespacedName, p *manifest.Pod, keeps []manifest.PortReservation) {
	for _, claim := range manifest.PortReservations(p) {
		t[claim.Number] = append(t[claim.Number], binding{PortReservation: claim, key: key, pod: p, keeps: keeps})
	}
}

// take adds the ports of the desired version.
func (t portTable) take(c Claimant) { t.add(c.Key, c.Wants, manifest.PortReservations(c.Wants)) }

// check checks the ports without reserving them.
func (t portTable) check(c Claimant) plan.Verdict {
	answer := plan.Verdict{}
	for _, claim := range manifest.PortReservations(c.Wants) {
		for _, b := range t[claim.Number] {
			if b.key == c.Key || !claim.ConflictsWith(b.PortReservation) {
				continue
			}
			v := plan.Verdict{Answer: plan.Reject, Reason: "HostPortConflict"}
			v.Message = fmt.Sprintf("host port %d/%s is taken by %s (%s)", claim.Number, claim.Protocol, b.key, b.pod.Origin)
			if !b.kept(claim) {
				v.Answer = plan.Wait
				v.Message = fmt.Sprintf("host port %d/%s is still used by %s, which is being stopped", claim.Number, claim.Protocol, b.key)
			}
			if v.Answer > answer.Answer || v.Answer == answer.Answer && v.Message < answer.Message {
				answer = v
			}
		}
	}
	if answer.Answer == plan.Reject && ofCluster(c.Wants) {
		return predicate("NodePorts", true, "node(s) didn't have free ports for the requested pod ports")
	}
	return answer
}

// places counts pods against the maximum of the node. leaving is the part of taken that is
// being released.
type places struct{ max, taken, leaving int }

// countPlaces counts the pods that are present, and those of them that are leaving.
func countPlaces(claimants []Claimant, limits Limits) *places {
	p := &places{max: limits.MaxPods}
	for _, c := range claimants {
		if c.Present {
			p.taken++
			if c.Wants == nil && !c.Unconfirmed || c.Ends {
				p.leaving++
			}
		}
	}
	return p
}

func (p *places) admit(c Claimant) plan.Verdict {
	if c.Present || p.max <= 0 {
		return plan.Verdict{}
	}
	if p.taken < p.max {
		p.taken++
		return plan.Verdict{}
	}
	v := plan.Verdict{Answer: plan.Reject, Reason: "OutOfpods"}
	v.Message = fmt.Sprintf("the node is full: %d of %d pods (--max-pods)", p.taken, p.max)
	if ofCluster(c.Wants) {
		v.Message = kubeletMessage(v1.ResourcePods, 1, int64(p.taken), int64(p.max))
	}
	if p.leaving > 0 {
		p.leaving--
		v.Answer = plan.Wait
		v.Message += ", one of them is being stopped"
	}
	return v
}
