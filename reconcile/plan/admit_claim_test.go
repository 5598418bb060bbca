package plan

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
)

// TestClaimOfOnePod: who wants a ReadWriteOncePod claim that another pod uses.
func TestClaimOfOnePod(t *testing.T) {
	using := func(uid types.UID, claim string) *manifest.Pod {
		p := &manifest.Pod{UID: uid, Key: types.NamespacedName{Namespace: "default"}, Spec: &v1.Pod{}}
		p.Spec.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
		return p
	}
	bound := func(p *manifest.Pod) *manifest.Pod { p.Origin.Kind = manifest.KindAPI; return p }
	a, b := types.NamespacedName{Namespace: "default", Name: "a"}, types.NamespacedName{Namespace: "default", Name: "b"}
	single := Limits{Single: map[refs.ClaimRef]bool{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "one"}}: true}}
	for name, test := range map[string]struct {
		holder Claimant
		claim  string
		want   Answer
	}{
		"used":                     {Claimant{Wants: using("a", "one"), Holds: []*manifest.Pod{using("a", "one")}}, "one", Reject},
		"wanted first":             {Claimant{Wants: using("a", "one")}, "one", Reject},
		"for many":                 {Claimant{Wants: using("a", "many"), Holds: []*manifest.Pod{using("a", "many")}}, "many", Admit},
		"another claim":            {Claimant{Wants: using("a", "one"), Holds: []*manifest.Pod{using("a", "one")}}, "many", Admit},
		"ending":                   {Claimant{Holds: []*manifest.Pod{using("a", "one")}, Yields: true}, "one", Wait},
		"going to another":         {Claimant{Wants: using("a", "two"), Holds: []*manifest.Pod{using("a", "one")}, Yields: true}, "one", Wait},
		"not going anywhere":       {Claimant{Wants: using("a", "two"), Holds: []*manifest.Pod{using("a", "one")}}, "one", Reject},
		"a cluster's of that name": {Claimant{Wants: bound(using("a", "one")), Holds: []*manifest.Pod{bound(using("a", "one"))}}, "one", Admit},
	} {
		test.holder.Key, test.holder.Present = a, true
		verdicts := Admission([]Claimant{test.holder, {Key: b, Wants: using("b", test.claim)}}, single)
		if got := verdicts[b]; got.Answer != test.want {
			t.Errorf("%s: %+v, want %v", name, got, test.want)
		}
		if got := verdicts[a]; got.Answer != Admit {
			t.Errorf("%s: its user has %+v", name, got)
		}
	}
}
