package plan

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
)

// TestAdmission_ReadWriteOncePod checks the admission of a pod with a claim that another pod
// uses. The claim "one" is ReadWriteOncePod.
func TestAdmission_ReadWriteOncePod(t *testing.T) {
	using := func(uid types.UID, claim string) *manifest.Pod {
		p := &manifest.Pod{UID: uid, Key: types.NamespacedName{Namespace: "default"}, Spec: &v1.Pod{}}
		p.Spec.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
		return p
	}
	bound := func(p *manifest.Pod) *manifest.Pod { p.Traits = manifest.KindTraits(manifest.KindAPI); return p }
	a, b := types.NamespacedName{Namespace: "default", Name: "a"}, types.NamespacedName{Namespace: "default", Name: "b"}
	single := Limits{Single: map[refs.ClaimRef]bool{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "one"}}: true}}
	for name, test := range map[string]struct {
		holder Claimant
		claim  string
		want   Answer
	}{
		"in use":                              {Claimant{Wants: using("a", "one"), Holds: []*manifest.Pod{using("a", "one")}}, "one", Reject},
		"desired by an admitted pod":          {Claimant{Wants: using("a", "one")}, "one", Reject},
		"claim with another access mode":      {Claimant{Wants: using("a", "many"), Holds: []*manifest.Pod{using("a", "many")}}, "many", Admit},
		"another claim":                       {Claimant{Wants: using("a", "one"), Holds: []*manifest.Pod{using("a", "one")}}, "many", Admit},
		"user is being deleted":               {Claimant{Holds: []*manifest.Pod{using("a", "one")}, Yields: true}, "one", Wait},
		"user is edited to use another claim": {Claimant{Wants: using("a", "two"), Holds: []*manifest.Pod{using("a", "one")}, Yields: true}, "one", Wait},
		"edit of the user waits":              {Claimant{Wants: using("a", "two"), Holds: []*manifest.Pod{using("a", "one")}}, "one", Reject},
		"claim of the cluster with this name": {Claimant{Wants: bound(using("a", "one")), Holds: []*manifest.Pod{bound(using("a", "one"))}}, "one", Admit},
	} {
		test.holder.Key, test.holder.Present = a, true
		verdicts := Admission([]Claimant{test.holder, {Key: b, Wants: using("b", test.claim)}}, single)
		if got := verdicts[b]; got.Answer != test.want {
			t.Errorf("%s: got %+v, want %v", name, got, test.want)
		}
		if got := verdicts[a]; got.Answer != Admit {
			t.Errorf("%s: got %+v for the user of the claim, want Admit", name, got)
		}
	}
}
