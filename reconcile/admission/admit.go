package admission

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/order"
	"podd/manifest/refs"
	"podd/reconcile/device/allocation"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/plan"
	"podd/runtime"
)

// A candidate is a pod name for which admitAll computes a verdict. It contains the desired version,
// and the versions that already have reservations.
type candidate struct {
	Key types.NamespacedName
	// Desired is the newest desired version; nil if the pod is not desired any more.
	Desired *manifest.Pod
	// ReservedVersions contains the versions that may still run, including versions that were
	// admitted and are being started.
	ReservedVersions []*manifest.Pod
	// UIDs contains the UIDs for which the name has a directory or sandbox on this node.
	UIDs []types.UID
	// Releasing reports whether the name releases the reservations of ReservedVersions that Desired
	// does not request. If Releasing is false, the name keeps all reservations of ReservedVersions.
	Releasing bool
	// Finished reports whether the desired version has finished and none of its containers
	// runs. Such a version reserves nothing.
	Finished bool
	// WindingDown reports whether the desired version has finished and its reservations are
	// being released.
	WindingDown bool
	// WaitsForRestart reports whether the desired version was evicted and must be started again. When
	// the version has released its reservations, Finished becomes false, and the version is admitted
	// as if it had never run.
	WaitsForRestart bool
	// Active reports whether the name counts towards Limits.MaxPods.
	Active bool
	// EarlierNames contains the names that the pod had while the node had other names. It is empty
	// if the name of the pod does not end with the name of the node. The names of pods of files and
	// URLs end with the name of the node.
	EarlierNames []types.NamespacedName
	// Unconfirmed reports whether the pod belongs to a cluster whose API server has not reported
	// yet that the pod is still desired.
	Unconfirmed bool
}

// isFinishedOrWindingDown reports whether the desired version has finished, even if its reservations are
// still being released. In that case, the name keeps none of them.
func (c *candidate) isFinishedOrWindingDown() bool { return c.Finished || c.WindingDown }

// Limits contains the limits and features of the node against which pods are checked.
type Limits struct {
	MaxPods int // 0 means no limit, unless NoPods is set
	// NoPods reports whether the maximum number of pods is 0, so that no pod starts.
	NoPods bool
	// MaxPodsFlags names the flags that determine MaxPods, such as "--max-pods", for messages. If it
	// is "", messages name no flag.
	MaxPodsFlags string
	// Allocatable contains the maximum sum of the requests of all pods, by resource. A resource
	// that is missing in Allocatable has no limit.
	Allocatable Amounts
	// Devices contains the number of plugin devices by resource.
	Devices map[v1.ResourceName]allocation.Count
	// AwaitsPlugins reports whether plugins of resources that Devices does not contain may register
	// soon, because podd was started recently.
	AwaitsPlugins bool
	// DevicesUnknown reports whether the devices were not counted. If DevicesUnknown is true,
	// no pod waits for devices.
	DevicesUnknown bool
	Features       Features
	// IDsPerPod is the number of host IDs of a pod with a user namespace; 0 means
	// runtime.DefaultIDsPerPod.
	IDsPerPod uint32
	// HostIDs contains the host IDs of all pods with user namespaces. First and Length must be
	// multiples of IDsPerPod. The zero value means all IDs from IDsPerPod.
	HostIDs runtime.IDRange
	// Pressure contains the pressure conditions of the node. While a condition is true, most pods
	// that are not active yet are not admitted.
	Pressure pressure.Conditions
	// PressureUnknown reports whether the node was not observed yet. If it is true, pods that are not
	// active yet wait.
	PressureUnknown bool
	// ShuttingDown reports whether the node is shutting down. If it is true, pods that are not
	// active yet are rejected.
	ShuttingDown bool
	// ReadWriteOncePod contains the PersistentVolumeClaims that only one pod at a time may use.
	ReadWriteOncePod map[refs.ClaimRef]bool
}

// The reason and message of a pod that is rejected because of a node shutdown, as in the kubelet.
const (
	nodeShutdownReason = "NodeShutdown"
	shutdownMessage    = "Pod was rejected as the node is shutting down."
)

// A portHolder is a reservation of a host port, with the pod that has the reservation. retained
// contains the reservations that this pod keeps when it releases its other reservations.
type portHolder struct {
	manifest.PortReservation
	key      types.NamespacedName
	pod      *manifest.Pod
	retained []manifest.PortReservation
}

// isRetained reports whether the pod keeps a reservation that conflicts with requested.
func (h *portHolder) isRetained(requested manifest.PortReservation) bool {
	return slices.ContainsFunc(h.retained, requested.ConflictsWith)
}

// admitAll returns a verdict for every candidate with a desired version. It admits active pods
// first, and then the other pods in the order of createdAt and name. If a candidate needs a
// reservation that another pod is releasing, its verdict is Wait.
//
// A pod that releases reservations because of an edit keeps them if the edit is rejected. Therefore
// admitAll clears Releasing of such a pod and repeats the computation, at most once for each
// candidate.
func admitAll(candidates []candidate, limits Limits) map[types.NamespacedName]plan.Verdict {
	sorted := slices.Clone(candidates)
	order.Stable(sorted, func(a, b candidate) int {
		if a.Active != b.Active {
			if a.Active {
				return -1
			}
			return 1
		}
		return cmp.Or(createdAt(&a).Compare(createdAt(&b)), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	for {
		verdicts, mustRepeat := admitInOrder(sorted, limits), false
		for i := range sorted {
			if c := &sorted[i]; c.Releasing && c.Desired != nil && verdicts[c.Key].Answer == plan.Reject {
				c.Releasing, mustRepeat = false, true
			}
		}
		if !mustRepeat {
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

// createdAt returns the time at which the cluster created the desired pod. It returns zero for a
// pod of a file or URL, so that these pods are admitted first.
func createdAt(c *candidate) (at time.Time) {
	if c.traits().FailsIfRejected {
		at = c.Desired.Object.CreationTimestamp.Time
	}
	return at
}

// An admitter returns verdicts for candidates, one after the other. Its tables contain the
// reservations of running versions and of the candidates that were admitted before.
type admitter struct {
	candidates []candidate
	limits     Limits
	ports      portTable
	pods       *podCount
	requests   *nodeRequests
	uids       uidTable
	claims     claimTable
	removed    removedTable
}

// admitInOrder computes a verdict for each candidate with a desired version, in the order of
// sorted.
func admitInOrder(sorted []candidate, limits Limits) map[types.NamespacedName]plan.Verdict {
	a := admitter{
		candidates: sorted, limits: limits, ports: newPortTable(sorted), pods: countPods(sorted, limits),
		requests: newNodeRequests(sorted, limits.amountsWithDevices()), uids: newUIDTable(sorted), claims: newClaimTable(sorted, limits),
		removed: newRemovedTable(sorted),
	}
	verdicts := map[types.NamespacedName]plan.Verdict{}
	for _, c := range sorted {
		if c.Desired == nil {
			continue
		}
		switch {
		case c.WaitsForRestart && c.WindingDown:
			verdicts[c.Key] = plan.Verdict{Answer: plan.Wait, Reason: plan.ReasonEvicted, Message: "the pod is being stopped"}
		case c.Finished, c.WindingDown:
			verdicts[c.Key] = plan.Verdict{}
		case limits.ShuttingDown && !c.Active:
			verdicts[c.Key] = plan.Verdict{Answer: plan.Reject, Reason: nodeShutdownReason, Message: shutdownMessage}
		case c.traits().FailsIfRejected:
			verdicts[c.Key] = a.admitClusterPod(c)
		default:
			verdicts[c.Key] = a.admit(c)
		}
	}
	return verdicts
}

// admit returns the verdict for a pod of a file or URL.
func (a *admitter) admit(c candidate) plan.Verdict {
	oldPods, oldRequested := *a.pods, a.requests.requested
	v := firstNotAdmitted(
		func() plan.Verdict { return a.limits.Features.admit(c.Desired) },
		func() plan.Verdict { return a.limits.checkPressure(c) },
		func() plan.Verdict { return a.pods.admit(c) },
		func() plan.Verdict { return a.limits.admitDevices(c) },
		func() plan.Verdict { return a.requests.admit(c) },
		func() plan.Verdict { return a.checkExclusive(c) },
	)
	if v.Answer == plan.Reject { // undo the reservations, because a rejected pod reserves nothing
		*a.pods, a.requests.requested = oldPods, oldRequested
	}
	if v.Answer == plan.Reject && v.Insufficient != "" && !c.isResize() {
		v = a.preemptForStatic(c, v)
	}
	if v.Answer == plan.Admit {
		a.ports.reserve(c)
		a.claims.reserve(c)
	}
	return v
}

// checkExclusive checks the properties of the desired version that only one pod at a time can have:
// the host ports, the UID, the earlier names and the volume claims.
func (a *admitter) checkExclusive(c candidate) plan.Verdict {
	return firstNotAdmitted(
		func() plan.Verdict { return a.ports.check(c) },
		func() plan.Verdict { return a.uids.admit(c) },
		func() plan.Verdict { return a.removed.admit(c) },
		func() plan.Verdict { return a.claims.check(c) },
	)
}

// uidTable maps UIDs to pod names. It contains each UID for which the node has a directory or
// sandbox, except the UIDs of desired versions.
type uidTable map[types.UID]types.NamespacedName

// newUIDTable returns the UIDs of versions that are not desired any more.
func newUIDTable(candidates []candidate) uidTable {
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

// admit returns Wait while a pod with another name has a directory or sandbox with the UID of the
// desired version. For example, an edit may have renamed a pod with a UID in its manifest.
func (t uidTable) admit(c candidate) plan.Verdict {
	holder, isInUse := t[c.Desired.UID]
	if !isInUse || holder == c.Key {
		return plan.Verdict{}
	}
	return plan.Verdict{Answer: plan.Wait, Reason: "UIDInUse", Message: fmt.Sprintf("metadata.uid %s is still used by %s, which is being stopped", c.Desired.UID, holder)}
}

// removedTable contains the names that are not desired any more, but still have containers, a
// sandbox or a directory on this node.
type removedTable map[types.NamespacedName]bool

// newRemovedTable returns the removedTable of the candidates.
func newRemovedTable(candidates []candidate) removedTable {
	t := removedTable{}
	for _, c := range candidates {
		if c.Desired == nil && (c.Active || len(c.UIDs) > 0) {
			t[c.Key] = true
		}
	}
	return t
}

// admit returns Wait until the pods with a name in c.EarlierNames have stopped. They come from the
// same manifest as the desired version, and must not run at the same time.
func (t removedTable) admit(c candidate) plan.Verdict {
	for _, name := range c.EarlierNames {
		if t[name] {
			return plan.Verdict{Answer: plan.Wait, Reason: "NodeRenamed", Message: fmt.Sprintf("%s, the same pod with an earlier node name, is being stopped", name)}
		}
	}
	return plan.Verdict{}
}

// portTable contains the reservations of host ports, by port number.
type portTable map[int32][]portHolder

// newPortTable returns the reservations of all versions that may run.
func newPortTable(candidates []candidate) portTable {
	t := portTable{}
	for _, c := range candidates {
		var retained []manifest.PortReservation
		if !c.isFinishedOrWindingDown() {
			retained = manifest.ListPortReservations(c.Desired)
		}
		for _, version := range c.ReservedVersions {
			if !c.Releasing && !c.isFinishedOrWindingDown() {
				retained = append(retained, manifest.ListPortReservations(version)...)
			}
			t.add(c.Key, version, retained)
		}
	}
	return t
}

// add adds reservations for the host ports of p, a version of the pod called key. See portHolder
// for retained.
func (t portTable) add(key types.NamespacedName, p *manifest.Pod, retained []manifest.PortReservation) {
	for _, r := range manifest.ListPortReservations(p) {
		t[r.Number] = append(t[r.Number], portHolder{PortReservation: r, key: key, pod: p, retained: retained})
	}
}

// reserve adds the reservations of the desired version.
func (t portTable) reserve(c candidate) {
	t.add(c.Key, c.Desired, manifest.ListPortReservations(c.Desired))
}

// check returns the verdict for the host ports of the desired version, without reserving them.
func (t portTable) check(c candidate) plan.Verdict {
	result := plan.Verdict{}
	for _, port := range manifest.ListPortReservations(c.Desired) {
		for _, h := range t[port.Number] {
			if h.key == c.Key || !port.ConflictsWith(h.PortReservation) {
				continue
			}
			v := plan.Verdict{Answer: plan.Reject, Reason: "HostPortConflict", BlockedByPods: true}
			v.Message = fmt.Sprintf("host port %d/%s is used by %s (%s)", port.Number, port.Protocol, h.key, h.pod.Origin)
			if !h.isRetained(port) {
				v.Answer = plan.Wait
				v.Message = fmt.Sprintf("host port %d/%s is still used by %s, which is being stopped", port.Number, port.Protocol, h.key)
			}
			if v.Answer > result.Answer || v.Answer == result.Answer && v.Message < result.Message {
				result = v
			}
		}
	}
	if result.Answer == plan.Reject && c.traits().FailsIfRejected {
		return rejectByPredicate("NodePorts", true, "node(s) didn't have free ports for the requested pod ports")
	}
	return result
}

// A podCount compares the number of pods with the limit. max and flags are Limits.MaxPods and
// Limits.MaxPodsFlags. hasMax reports whether there is a limit. count is the number of active and
// admitted pods, and stoppingCount is the number of these pods that are being stopped.
type podCount struct {
	max, count, stoppingCount int
	hasMax                    bool
	flags                     string
}

// countPods returns a podCount that counts the active candidates.
func countPods(candidates []candidate, limits Limits) *podCount {
	p := &podCount{max: limits.MaxPods, hasMax: limits.NoPods || limits.MaxPods > 0, flags: limits.MaxPodsFlags}
	for _, c := range candidates {
		if c.Active {
			p.count++
			if c.Desired == nil && !c.Unconfirmed || c.WindingDown {
				p.stoppingCount++
			}
		}
	}
	return p
}

// admit returns the verdict for the number of pods. If a pod that is not active yet is admitted,
// admit adds it to the count.
func (p *podCount) admit(c candidate) plan.Verdict {
	if c.Active || !p.hasMax {
		return plan.Verdict{}
	}
	if p.count < p.max {
		p.count++
		return plan.Verdict{}
	}
	v := rejectInsufficient(v1.ResourcePods)
	v.BlockedByPods = true
	v.Message = fmt.Sprintf("the node is full: %d of %d pods", p.count, p.max)
	if p.flags != "" {
		v.Message += " (limited by " + p.flags + ")"
	}
	if c.traits().FailsIfRejected {
		v.Message = formatInsufficient(v1.ResourcePods, 1, int64(p.count), int64(p.max))
	}
	if p.stoppingCount > 0 {
		p.stoppingCount--
		v.Answer = plan.Wait
		v.Message += "; one of these pods is being stopped"
	}
	return v
}
