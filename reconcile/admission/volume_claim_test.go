package admission

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/plan"
)

// TestAdmission_ReadWriteOncePod checks the admission of a pod with a claim that another pod
// uses. The claim "one" is ReadWriteOncePod.
func TestAdmission_ReadWriteOncePod(t *testing.T) {
	using := func(uid types.UID, claim string) *manifest.Pod {
		p := &manifest.Pod{UID: uid, Key: types.NamespacedName{Namespace: "default"}, Object: &v1.Pod{}}
		p.Object.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
		return p
	}
	bound := func(p *manifest.Pod) *manifest.Pod { p.Traits = manifest.KindTraits(manifest.KindAPI); return p }
	a, b := types.NamespacedName{Namespace: "default", Name: "a"}, types.NamespacedName{Namespace: "default", Name: "b"}
	single := Limits{ReadWriteOncePod: map[refs.ClaimRef]bool{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "one"}}: true}}
	for name, test := range map[string]struct {
		holder candidate
		claim  string
		want   plan.Answer
	}{
		"in use":                              {candidate{Desired: using("a", "one"), ReservedVersions: []*manifest.Pod{using("a", "one")}}, "one", plan.Reject},
		"desired by an admitted pod":          {candidate{Desired: using("a", "one")}, "one", plan.Reject},
		"claim with another access mode":      {candidate{Desired: using("a", "many"), ReservedVersions: []*manifest.Pod{using("a", "many")}}, "many", plan.Admit},
		"another claim":                       {candidate{Desired: using("a", "one"), ReservedVersions: []*manifest.Pod{using("a", "one")}}, "many", plan.Admit},
		"user is being deleted":               {candidate{ReservedVersions: []*manifest.Pod{using("a", "one")}, Releasing: true}, "one", plan.Wait},
		"user is edited to use another claim": {candidate{Desired: using("a", "two"), ReservedVersions: []*manifest.Pod{using("a", "one")}, Releasing: true}, "one", plan.Wait},
		"edit of the user waits":              {candidate{Desired: using("a", "two"), ReservedVersions: []*manifest.Pod{using("a", "one")}}, "one", plan.Reject},
		"claim of the cluster with this name": {candidate{Desired: bound(using("a", "one")), ReservedVersions: []*manifest.Pod{bound(using("a", "one"))}}, "one", plan.Admit},
	} {
		test.holder.Key, test.holder.Active = a, true
		verdicts := admitAll([]candidate{test.holder, {Key: b, Desired: using("b", test.claim)}}, single)
		if got := verdicts[b]; got.Answer != test.want {
			t.Errorf("%s: pod b: got %+v, want %v", name, got, test.want)
		}
		if got := verdicts[a]; got.Answer != plan.Admit {
			t.Errorf("%s: pod a, which uses the claim: got %+v, want Admit", name, got)
		}
	}
}
