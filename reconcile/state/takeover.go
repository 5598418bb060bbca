package state

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

// takeOver returns observed with Foreign set to false for the sandboxes that podd takes over from a
// kubelet. The containers in these sandboxes keep running. podd takes over the pods of a cluster
// that may terminate by themselves, because a replacement would run such a pod twice, which its
// restart policy may forbid. podd replaces other pods of a kubelet. A sandbox that was taken over
// does not become foreign again, even if its pod is not desired any more or podd runs without
// --adopt.
func (t *transition) takeOver(observed []runtime.Incarnation) []runtime.Incarnation {
	cloned := false
	for i := range observed {
		hash := t.takenOverHash(&observed[i])
		if hash == "" {
			continue
		}
		if !cloned { // copy observed before the first change, because other goroutines read it
			observed, cloned = slices.Clone(observed), true
		}
		inc := &observed[i]
		inc.Foreign, inc.Annotations = false, maps.Clone(inc.Annotations)
		inc.Annotations[runtime.AnnotationPodHash] = hash
	}
	return observed
}

// takenOverHash returns the hash of the version for which podd takes over sandbox inc; "" if podd
// does not take over inc.
func (t *transition) takenOverHash(inc *runtime.Incarnation) string {
	if !inc.Foreign || inc.Labels[runtime.LabelInstance] != "" || !manifest.KindTraits(inc.Annotations[manifest.AnnotationConfigSource]).RunsOnce {
		return ""
	}
	record := t.Records[inc.UID]
	if !t.Order.Node.AdoptKubeletPods && !record.TakenOver {
		return ""
	}
	for _, p := range []*manifest.Pod{t.PlanInput.Desired, t.PlanInput.Successor, t.PlanInput.Previous, t.Order.TerminatingPod} {
		if p == nil || !p.Traits.RunsOnce || p.UID != inc.UID {
			continue
		}
		if p.Object.Spec.RestartPolicy == v1.RestartPolicyAlways {
			return ""
		}
		return p.Hash
	}
	return record.Hash
}

// recordTakenOver records the takeover of a pod in its journal, so that podd still manages the
// sandboxes of the pod after a restart.
func (t *transition) recordTakenOver() {
	for i := range t.PlanInput.Observed {
		inc := &t.PlanInput.Observed[i]
		j := t.Records[inc.UID]
		if !inc.Foreign && inc.ID != "" && inc.Labels[runtime.LabelInstance] == "" && !j.TakenOver {
			j.TakenOver = true
			t.Records = withKey(t.Records, inc.UID, j)
			t.addWrite(inc.UID, inc.Annotations[runtime.AnnotationPodHash])
		}
	}
}
