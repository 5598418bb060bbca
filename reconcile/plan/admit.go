package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// Claimant is one pod name's claims on what the node has once.
type Claimant struct {
	Key types.NamespacedName
	// Wants is the newest wanted version; nil when the name is going.
	Wants *manifest.Pod
	// Holds are the versions of which something may still run, also those that
	// were admitted and are being started.
	Holds []*manifest.Pod
	// UIDs of which the name has anything on this machine: directories are
	// named after them.
	UIDs []types.UID
	// Yields says that what is held and not wanted any more is being given up;
	// otherwise a version that runs keeps it for as long as it runs.
	Yields bool
	// Rests says that what is wanted ran to its end: it claims nothing any more.
	Rests bool
	// Ends says that what is wanted has come to its end, and what is held of it is
	// being given up.
	Ends bool
	// Present says that the name takes one of the node's places for pods.
	Present bool
	// Unseen says that it is a cluster's, which has not told yet whether it wants it.
	Unseen bool
}

// over: what is wanted has come to its end, so that nothing that is held is kept.
func (c *Claimant) over() bool { return c.Rests || c.Ends }

// Limits are the node's.
type Limits struct {
	MaxPods int // 0: no limit
	// Amounts are what all pods together may request; what is not named has no
	// limit.
	Amounts Amounts
	// Devices are those of device plugins, by resource; nil: none are served.
	Devices map[v1.ResourceName]Devices
	// DevicesUnknown says that Devices were not counted: nothing is kept back for
	// what it asks of them.
	DevicesUnknown bool
	Machine        Machine
	// ShuttingDown admits nothing that is not there yet.
	ShuttingDown bool
	// Single are the claims that one pod may use at a time.
	Single map[manifest.ClaimRef]bool
}

// binding is who has a host port, and what it wants to have.
type binding struct {
	manifest.HostClaim
	key   types.NamespacedName
	pod   *manifest.Pod
	keeps []manifest.HostClaim
}

// kept says that who has the port wants it, or what excludes claim as well.
func (b *binding) kept(claim manifest.HostClaim) bool {
	return slices.ContainsFunc(b.keeps, claim.Meets)
}

// Admission answers for every claimant that wants something. Who is present comes
// first, then the names in order. A claim is free once its holder is gone;
// while the holder is on its way out the answer is Wait. A holder whose edit is
// rejected is on no way out, and that may reject others: so it is asked again
// until nothing changes, at most once for each claimant.
func Admission(claimants []Claimant, limits Limits) map[types.NamespacedName]Verdict {
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
			if c := &ordered[i]; c.Yields && c.Wants != nil && verdicts[c.Key].Answer == Reject {
				c.Yields, again = false, true
			}
		}
		if !again {
			return verdicts
		}
	}
}

// madeAt is when a cluster made what is wanted, by which its pods come in turn, and
// behind all others.
func madeAt(c *Claimant) (at time.Time) {
	if ofCluster(c.Wants) {
		at = c.Wants.Spec.CreationTimestamp.Time
	}
	return at
}

// admissions is what is left for those who are asked for next.
type admissions struct {
	all    []Claimant
	limits Limits
	ports  portTable
	places *places
	shares *shares
	uids   uidTable
	claims claimTable
}

func admission(ordered []Claimant, limits Limits) map[types.NamespacedName]Verdict {
	a := admissions{
		all: ordered, limits: limits, ports: heldPorts(ordered), places: countPlaces(ordered, limits),
		shares: heldShares(ordered, limits.withDevices()), uids: heldUIDs(ordered), claims: heldClaims(ordered, limits),
	}
	verdicts := map[types.NamespacedName]Verdict{}
	for _, c := range ordered {
		if c.Wants == nil {
			continue
		}
		switch {
		case c.Rests, c.Ends:
			verdicts[c.Key] = Verdict{}
		case limits.ShuttingDown && !c.Present:
			verdicts[c.Key] = Verdict{Answer: Reject, Reason: NodeShutdown, Message: rejectedMessage}
		case ofCluster(c.Wants):
			verdicts[c.Key] = a.admitOfCluster(c)
		default:
			verdicts[c.Key] = a.admit(c)
		}
	}
	return verdicts
}

func (a *admissions) admit(c Claimant) Verdict {
	places, taken := *a.places, a.shares.taken
	v := first(
		func() Verdict { return a.limits.Machine.admit(c.Wants) },
		func() Verdict { return a.places.admit(c) },
		func() Verdict { return a.limits.admitDevices(c) },
		func() Verdict { return a.shares.admit(c) },
		func() Verdict { return a.once(c) },
	)
	if v.Answer == Reject { // it takes nothing, whatever it was given above
		*a.places, a.shares.taken = places, taken
	}
	if v.Answer == Reject && short(v.Reason) && !c.resizes() {
		v = a.makeRoom(c, v)
	}
	if v.Answer == Admit {
		a.ports.take(c)
		a.claims.take(c)
	}
	return v
}

// once is what is asked of a pod that there is room for: what only one may have.
func (a *admissions) once(c Claimant) Verdict {
	return first(
		func() Verdict { return a.ports.ask(c) },
		func() Verdict { return a.uids.admit(c) },
		func() Verdict { return a.claims.ask(c) },
	)
}

// uidTable has who holds a UID.
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

// admit: a uid that a user moved from one name to another is free once nothing
// of the first is left.
func (t uidTable) admit(c Claimant) Verdict {
	holder, held := t[c.Wants.UID]
	if !held || holder == c.Key {
		return Verdict{}
	}
	return Verdict{Answer: Wait, Reason: "UIDInUse", Message: fmt.Sprintf("metadata.uid %s is still that of %s, which is ending", c.Wants.UID, holder)}
}

type portTable map[int32][]binding

func heldPorts(claimants []Claimant) portTable {
	t := portTable{}
	for _, c := range claimants {
		var keeps []manifest.HostClaim
		if !c.over() {
			keeps = manifest.HostClaims(c.Wants)
		}
		for _, held := range c.Holds {
			if !c.Yields && !c.over() {
				keeps = append(keeps, manifest.HostClaims(held)...)
			}
			t.add(c.Key, held, keeps)
		}
	}
	return t
}

func (t portTable) add(key types.NamespacedName, p *manifest.Pod, keeps []manifest.HostClaim) {
	for _, claim := range manifest.HostClaims(p) {
		t[claim.Number] = append(t[claim.Number], binding{HostClaim: claim, key: key, pod: p, keeps: keeps})
	}
}

func (t portTable) take(c Claimant) { t.add(c.Key, c.Wants, manifest.HostClaims(c.Wants)) }

// ask takes nothing.
func (t portTable) ask(c Claimant) Verdict {
	answer := Verdict{}
	for _, claim := range manifest.HostClaims(c.Wants) {
		for _, b := range t[claim.Number] {
			if b.key == c.Key || !claim.Meets(b.HostClaim) {
				continue
			}
			v := Verdict{Answer: Reject, Reason: "HostPortConflict"}
			v.Message = fmt.Sprintf("host port %d/%s is taken by %s (%s)", claim.Number, claim.Protocol, b.key, b.pod.Origin)
			if !b.kept(claim) {
				v.Answer = Wait
				v.Message = fmt.Sprintf("host port %d/%s is still held by %s, which is ending", claim.Number, claim.Protocol, b.key)
			}
			if v.Answer > answer.Answer || v.Answer == answer.Answer && v.Message < answer.Message {
				answer = v
			}
		}
	}
	if answer.Answer == Reject && ofCluster(c.Wants) {
		return predicate("NodePorts", true, "node(s) didn't have free ports for the requested pod ports")
	}
	return answer
}

type places struct{ max, taken, leaving int }

func countPlaces(claimants []Claimant, limits Limits) *places {
	p := &places{max: limits.MaxPods}
	for _, c := range claimants {
		if c.Present {
			p.taken++
			if c.Wants == nil && !c.Unseen || c.Ends {
				p.leaving++
			}
		}
	}
	return p
}

func (p *places) admit(c Claimant) Verdict {
	if c.Present || p.max <= 0 {
		return Verdict{}
	}
	if p.taken < p.max {
		p.taken++
		return Verdict{}
	}
	v := Verdict{Answer: Reject, Reason: "OutOfpods"}
	v.Message = fmt.Sprintf("the node is full: %d of %d pods (--max-pods)", p.taken, p.max)
	if ofCluster(c.Wants) {
		v.Message = clusterWords(v1.ResourcePods, 1, int64(p.taken), int64(p.max))
	}
	if p.leaving > 0 {
		p.leaving--
		v.Answer = Wait
		v.Message += ", one is ending"
	}
	return v
}
