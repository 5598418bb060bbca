package admission

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/refs"
	"podd/reconcile/plan"
)

// claimTable contains the pods that use PersistentVolumeClaims, by claim. exclusive contains the
// claims that only one pod at a time may use.
type claimTable struct {
	exclusive map[refs.ClaimRef]bool
	users     map[refs.ClaimRef][]claimUser
}

// A claimUser is a pod that uses a claim. retained reports whether the pod keeps the claim when it
// releases its other reservations.
type claimUser struct {
	key      types.NamespacedName
	retained bool
}

// newClaimTable returns the claims of all versions that may run.
func newClaimTable(candidates []candidate, limits Limits) claimTable {
	t := claimTable{limits.ReadWriteOncePod, map[refs.ClaimRef][]claimUser{}}
	for _, c := range candidates {
		desired := refs.ListClaims(c.Desired)
		for _, version := range c.ReservedVersions {
			for _, name := range refs.ListClaims(version) {
				t.users[name] = append(t.users[name], claimUser{c.Key, !c.isFinishedOrWindingDown() && (!c.Releasing || slices.Contains(desired, name))})
			}
		}
	}
	return t
}

// reserve adds the claims of the desired version.
func (t claimTable) reserve(c candidate) {
	for _, name := range refs.ListClaims(c.Desired) {
		t.users[name] = append(t.users[name], claimUser{c.Key, true})
	}
}

// check returns the verdict for the claims of the desired version, without reserving them.
func (t claimTable) check(c candidate) plan.Verdict {
	result := plan.Verdict{}
	for _, name := range refs.ListClaims(c.Desired) {
		for _, u := range t.users[name] {
			if !t.exclusive[name] || u.key == c.Key || result.Answer == plan.Reject {
				continue
			}
			result = plan.Verdict{Answer: plan.Wait, Reason: "ReadWriteOncePodConflict", BlockedByPods: true, Message: fmt.Sprintf("claim %s is ReadWriteOncePod and still used by %s, which is being stopped", name.Name, u.key)}
			if u.retained {
				result.Answer = plan.Reject
				result.Message = fmt.Sprintf("claim %s is ReadWriteOncePod and used by %s", name.Name, u.key)
			}
		}
	}
	return result
}
