package admission

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/refs"
	"podd/reconcile/plan"
)

// claimTable contains the users of the claims that only one pod at a time may use.
type claimTable struct {
	single map[refs.ClaimRef]bool
	users  map[refs.ClaimRef][]claimUser
}

// claimUser is a pod that uses a claim; retained reports that it still desires it.
type claimUser struct {
	key      types.NamespacedName
	retained bool
}

func heldClaims(candidates []candidate, limits Limits) claimTable {
	t := claimTable{limits.ReadWriteOncePod, map[refs.ClaimRef][]claimUser{}}
	for _, c := range candidates {
		wants := refs.ListClaims(c.Desired)
		for _, held := range c.Held {
			for _, name := range refs.ListClaims(held) {
				t.users[name] = append(t.users[name], claimUser{c.Key, !c.hasFinished() && (!c.Releasing || slices.Contains(wants, name))})
			}
		}
	}
	return t
}

func (t claimTable) take(c candidate) {
	for _, name := range refs.ListClaims(c.Desired) {
		t.users[name] = append(t.users[name], claimUser{c.Key, true})
	}
}

// check checks the claims without reserving them.
func (t claimTable) check(c candidate) plan.Verdict {
	answer := plan.Verdict{}
	for _, name := range refs.ListClaims(c.Desired) {
		for _, u := range t.users[name] {
			if !t.single[name] || u.key == c.Key || answer.Answer == plan.Reject {
				continue
			}
			answer = plan.Verdict{Answer: plan.Wait, Reason: "ReadWriteOncePodConflict", Message: fmt.Sprintf("claim %s is ReadWriteOncePod and still used by %s, which is being stopped", name.Name, u.key)}
			if u.retained {
				answer.Answer = plan.Reject
				answer.Message = fmt.Sprintf("claim %s is ReadWriteOncePod and used by %s", name.Name, u.key)
			}
		}
	}
	return answer
}
