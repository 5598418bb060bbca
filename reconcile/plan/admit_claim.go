package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// claimTable has who uses the claims that are for one pod at a time.
type claimTable struct {
	single map[manifest.ClaimRef]bool
	users  map[manifest.ClaimRef][]claimUser
}

// claimUser is a pod that uses a claim; keeps says that it wants it.
type claimUser struct {
	key   types.NamespacedName
	keeps bool
}

func heldClaims(claimants []Claimant, limits Limits) claimTable {
	t := claimTable{limits.Single, map[manifest.ClaimRef][]claimUser{}}
	for _, c := range claimants {
		wants := manifest.ClaimsOf(c.Wants)
		for _, held := range c.Holds {
			for _, name := range manifest.ClaimsOf(held) {
				t.users[name] = append(t.users[name], claimUser{c.Key, !c.over() && (!c.Yields || slices.Contains(wants, name))})
			}
		}
	}
	return t
}

func (t claimTable) take(c Claimant) {
	for _, name := range manifest.ClaimsOf(c.Wants) {
		t.users[name] = append(t.users[name], claimUser{c.Key, true})
	}
}

// ask takes nothing.
func (t claimTable) ask(c Claimant) Verdict {
	answer := Verdict{}
	for _, name := range manifest.ClaimsOf(c.Wants) {
		for _, u := range t.users[name] {
			if !t.single[name] || u.key == c.Key || answer.Answer == Reject {
				continue
			}
			answer = Verdict{Answer: Wait, Reason: "ReadWriteOncePodConflict", Message: fmt.Sprintf("claim %s is ReadWriteOncePod and still used by %s, which is ending", name.Name, u.key)}
			if u.keeps {
				answer.Answer = Reject
				answer.Message = fmt.Sprintf("claim %s is ReadWriteOncePod and used by %s", name.Name, u.key)
			}
		}
	}
	return answer
}
