package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// claimTable has who uses the claims that are for one pod at a time.
type claimTable struct {
	single map[types.NamespacedName]bool
	users  map[types.NamespacedName][]claimUser
}

// claimUser is a pod that uses a claim; keeps says that it wants it.
type claimUser struct {
	key   types.NamespacedName
	keeps bool
}

func heldClaims(claimants []Claimant, limits Limits) claimTable {
	t := claimTable{limits.Single, map[types.NamespacedName][]claimUser{}}
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

func (t claimTable) admit(c Claimant) Verdict {
	answer := Verdict{}
	wants := manifest.ClaimsOf(c.Wants)
	for _, name := range wants {
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
	if answer.Answer == Admit {
		for _, name := range wants {
			t.users[name] = append(t.users[name], claimUser{c.Key, true})
		}
	}
	return answer
}
