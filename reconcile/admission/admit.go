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

// A candidate is a pod name with the version to admit and the reservations that its earlier
// versions have.
type candidate struct {
	Key types.NamespacedName
	// Desired is the newest desired version; nil if the pod is to be deleted.
	Desired *manifest.Pod
	// Held contains the versions that may still run, including those that were admitted
	// and are being started.
	Held []*manifest.Pod
	// UIDs contains the UIDs for which the name has a directory or sandbox on this node.
	UIDs []types.UID
	// Releasing reports whether reservations that Desired does not request are being released.
	// Otherwise a running version keeps its reservations until it has stopped.
	Releasing bool
	// Finished reports whether the desired version has finished and nothing of it runs, so it
	// reserves nothing.
	Finished bool
	// WindingDown reports whether the desired version has finished and its reservations are being
	// released.
	WindingDown bool
	// Active reports whether the name counts toward Limits.MaxPods.
	Active bool
	// EarlierNames contains the names of the same pod under earlier names of the node.
	EarlierNames []types.NamespacedName
	// Unconfirmed reports a pod of a cluster that has not confirmed yet whether it desires the
	// pod.
	Unconfirmed bool
}

// hasFinished reports whether the desired version has finished, so that nothing is kept.
func (c *candidate) hasFinished() bool { return c.Finished || c.WindingDown }

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
	Features       Features
	// ShuttingDown prevents the admission of pods that are not present yet.
	ShuttingDown bool
	// ReadWriteOncePod contains the claims that only one pod at a time may use.
	ReadWriteOncePod map[refs.ClaimRef]bool
}

// The reason and message of a pod that is rejected because of a node shutdown, as in a
// kubelet.
const (
	nodeShutdown    = "NodeShutdown"
	shutdownMessage = "Pod was rejected as the node is shutting down."
)

// portHolder is a pod that has reserved a host port. The pod keeps the ports in retained when
// its other reservations are released.
type portHolder struct {
	manifest.PortReservation
	key      types.NamespacedName
	pod      *manifest.Pod
	retained []manifest.PortReservation
}

// isRetained reports whether the pod still desires the port, or another reservation that
// conflicts with claim.
func (b *portHolder) isRetained(claim manifest.PortReservation) bool {
	return slices.ContainsFunc(b.retained, claim.ConflictsWith)
}

// admitAll returns a verdict for every candidate with a desired version. Active pods come
// first, then the others ordered by name. A reservation is free once its holder is deleted;
// while the holder is being stopped, the verdict is Wait. If an edit of the holder is
// rejected, the holder is not stopped, which may reject others. Therefore the computation
// is repeated until nothing changes, at most once for each candidate.
func admitAll(candidates []candidate, limits Limits) map[types.NamespacedName]plan.Verdict {
	ordered := slices.Clone(candidates)
	slices.SortStableFunc(ordered, func(a, b candidate) int {
		if a.Active != b.Active {
			if a.Active {
				return -1
			}
			return 1
		}
		return cmp.Or(createdAt(&a).Compare(createdAt(&b)), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	for {
		verdicts, again := admitInOrder(ordered, limits), false
		for i := range ordered {
			if c := &ordered[i]; c.Releasing && c.Desired != nil && verdicts[c.Key].Answer == plan.Reject {
				c.Releasing, again = false, true
			}
		}
		if !again {
			return verdicts
		}
	}
}

// traits returns the traits of the desired version; zero if there is none.
func (c *candidate) traits() manifest.Traits {
	if c.Desired == nil {
		return manifest.Traits{}
	}
	return c.Desired.Traits
}

// createdAt returns when the cluster created the desired pod, because pods of a cluster are
// ordered by that time, after all others.
func createdAt(c *candidate) (at time.Time) {
	if c.traits().FailsIfRejected {
		at = c.Desired.Spec.CreationTimestamp.Time
	}
	return at
}

// admitter decides about candidates one after the other. Its tables contain the reservations
// of running versions and of the candidates that were admitted before.
type admitter struct {
	all      []candidate
	limits   Limits
	ports    portTable
	pods     *podCount
	requests *nodeRequests
	uids     uidTable
	claims   claimTable
	removed  removedTable
}

func admitInOrder(ordered []candidate, limits Limits) map[types.NamespacedName]plan.Verdict {
	a := admitter{
		all: ordered, limits: limits, ports: heldPorts(ordered), pods: countPods(ordered, limits),
		requests: heldRequests(ordered, limits.withDevices()), uids: heldUIDs(ordered), claims: heldClaims(ordered, limits),
		removed: removedNames(ordered),
	}
	verdicts := map[types.NamespacedName]plan.Verdict{}
	for _, c := range ordered {
		if c.Desired == nil {
			continue
		}
		switch {
		case c.Finished, c.WindingDown:
			verdicts[c.Key] = plan.Verdict{}
		case limits.ShuttingDown && !c.Active:
			verdicts[c.Key] = plan.Verdict{Answer: plan.Reject, Reason: nodeShutdown, Message: shutdownMessage}
		case c.traits().FailsIfRejected:
			verdicts[c.Key] = a.admitOfCluster(c)
		default:
			verdicts[c.Key] = a.admit(c)
		}
	}
	return verdicts
}

func (a *admitter) admit(c candidate) plan.Verdict {
	pods, taken := *a.pods, a.requests.taken
	v := firstNotAdmitted(
		func() plan.Verdict { return a.limits.Features.admit(c.Desired) },
		func() plan.Verdict { return a.pods.admit(c) },
		func() plan.Verdict { return a.limits.admitDevices(c) },
		func() plan.Verdict { return a.requests.admit(c) },
		func() plan.Verdict { return a.admitExclusive(c) },
	)
	if v.Answer == plan.Reject { // a rejected pod reserves nothing
		*a.pods, a.requests.taken = pods, taken
	}
	if v.Answer == plan.Reject && isOutOf(v.Reason) && !c.isResize() {
		v = a.preemptForStatic(c, v)
	}
	if v.Answer == plan.Admit {
		a.ports.take(c)
		a.claims.take(c)
	}
	return v
}

// admitExclusive checks the resources that only one pod at a time can have, if there is
// room for the pod.
func (a *admitter) admitExclusive(c candidate) plan.Verdict {
	return firstNotAdmitted(
		func() plan.Verdict { return a.ports.check(c) },
		func() plan.Verdict { return a.uids.admit(c) },
		func() plan.Verdict { return a.removed.admit(c) },
		func() plan.Verdict { return a.claims.check(c) },
	)
}

// uidTable contains the holder of each UID.
type uidTable map[types.UID]types.NamespacedName

func heldUIDs(candidates []candidate) uidTable {
	t := uidTable{}
	for _, c := range candidates {
		for _, uid := range c.UIDs {
			if c.Desired == nil || c.Desired.UID != uid {
				t[uid] = c.Key
			}
		}
	}
	return t
}

// admit makes a pod wait until nothing is left of another name that had its UID before an
// edit.
func (t uidTable) admit(c candidate) plan.Verdict {
	holder, held := t[c.Desired.UID]
	if !held || holder == c.Key {
		return plan.Verdict{}
	}
	return plan.Verdict{Answer: plan.Wait, Reason: "UIDInUse", Message: fmt.Sprintf("metadata.uid %s is still used by %s, which is being stopped", c.Desired.UID, holder)}
}

// removedTable contains the names that are not desired any more and have left something on
// this node.
type removedTable map[types.NamespacedName]bool

func removedNames(candidates []candidate) removedTable {
	t := removedTable{}
	for _, c := range candidates {
		if c.Desired == nil && (c.Active || len(c.UIDs) > 0) {
			t[c.Key] = true
		}
	}
	return t
}

// admit makes a pod wait for its own earlier incarnations if the node was renamed, because
// all have one manifest and must not run at the same time.
func (t removedTable) admit(c candidate) plan.Verdict {
	for _, name := range c.EarlierNames {
		if t[name] {
			return plan.Verdict{Answer: plan.Wait, Reason: "NodeRenamed", Message: fmt.Sprintf("%s, this pod under an earlier name of the node, is being stopped", name)}
		}
	}
	return plan.Verdict{}
}

type portTable map[int32][]portHolder

// heldPorts returns the ports of all versions that may run.
func heldPorts(candidates []candidate) portTable {
	t := portTable{}
	for _, c := range candidates {
		var retained []manifest.PortReservation
		if !c.hasFinished() {
			retained = manifest.PortReservations(c.Desired)
		}
		for _, held := range c.Held {
			if !c.Releasing && !c.hasFinished() {
				retained = append(retained, manifest.PortReservations(held)...)
			}
			t.add(c.Key, held, retained)
		}
	}
	return t
}

func (t portTable) add(key types.NamespacedName, p *manifest.Pod, retained []manifest.PortReservation) {
	for _, claim := range manifest.PortReservations(p) {
		t[claim.Number] = append(t[claim.Number], portHolder{PortReservation: claim, key: key, pod: p, retained: retained})
	}
}

// take adds the ports of the desired version.
func (t portTable) take(c candidate) { t.add(c.Key, c.Desired, manifest.PortReservations(c.Desired)) }

// check checks the ports without reserving them.
func (t portTable) check(c candidate) plan.Verdict {
	answer := plan.Verdict{}
	for _, claim := range manifest.PortReservations(c.Desired) {
		for _, b := range t[claim.Number] {
			if b.key == c.Key || !claim.ConflictsWith(b.PortReservation) {
				continue
			}
			v := plan.Verdict{Answer: plan.Reject, Reason: "HostPortConflict"}
			v.Message = fmt.Sprintf("host port %d/%s is taken by %s (%s)", claim.Number, claim.Protocol, b.key, b.pod.Origin)
			if !b.isRetained(claim) {
				v.Answer = plan.Wait
				v.Message = fmt.Sprintf("host port %d/%s is still used by %s, which is being stopped", claim.Number, claim.Protocol, b.key)
			}
			if v.Answer > answer.Answer || v.Answer == answer.Answer && v.Message < answer.Message {
				answer = v
			}
		}
	}
	if answer.Answer == plan.Reject && c.traits().FailsIfRejected {
		return predicate("NodePorts", true, "node(s) didn't have free ports for the requested pod ports")
	}
	return answer
}

// podCount counts active pods. taken includes the leaving pods, which are being stopped. max is
// Limits.MaxPods.
type podCount struct{ max, taken, leaving int }

// countPods counts the active pods, and the active pods that are being stopped.
func countPods(candidates []candidate, limits Limits) *podCount {
	p := &podCount{max: limits.MaxPods}
	for _, c := range candidates {
		if c.Active {
			p.taken++
			if c.Desired == nil && !c.Unconfirmed || c.WindingDown {
				p.leaving++
			}
		}
	}
	return p
}

func (p *podCount) admit(c candidate) plan.Verdict {
	if c.Active || p.max <= 0 {
		return plan.Verdict{}
	}
	if p.taken < p.max {
		p.taken++
		return plan.Verdict{}
	}
	v := plan.Verdict{Answer: plan.Reject, Reason: "OutOfpods"}
	v.Message = fmt.Sprintf("the node is full: %d of %d pods (--max-pods)", p.taken, p.max)
	if c.traits().FailsIfRejected {
		v.Message = kubeletMessage(v1.ResourcePods, 1, int64(p.taken), int64(p.max))
	}
	if p.leaving > 0 {
		p.leaving--
		v.Answer = plan.Wait
		v.Message += ", one of them is being stopped"
	}
	return v
}
