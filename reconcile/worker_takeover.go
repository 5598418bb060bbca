package reconcile

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

// takeOver makes a kubelet's sandboxes podd's own as they run, if they are of a cluster's
// pod that may terminate by itself. If podd replaced such a pod, it would run twice, which
// its restart policy may forbid. Other pods of a kubelet are replaced. A sandbox that was
// taken over stays podd's own, even if its pod is not desired any more or podd runs without
// --adopt.
func (w *worker) takeOver(seen []runtime.Incarnation) []runtime.Incarnation {
	cloned := false
	for i := range seen {
		hash := w.takenOverHash(&seen[i])
		if hash == "" {
			continue
		}
		if !cloned { // others read the observation
			seen, cloned = slices.Clone(seen), true
		}
		inc := &seen[i]
		inc.Foreign, inc.Annotations = false, maps.Clone(inc.Annotations)
		inc.Annotations[runtime.AnnotationHash] = hash
	}
	return seen
}

// takenOverHash returns the hash of the version that a foreign sandbox is taken over for;
// "" if it is not.
func (w *worker) takenOverHash(inc *runtime.Incarnation) string {
	if !inc.Foreign || inc.Labels[runtime.LabelInstance] != "" || inc.Annotations[manifest.AnnotationConfigSource] != manifest.KindAPI {
		return ""
	}
	past := w.past[inc.UID]
	if !w.order.node.Adopt && !past.Taken {
		return ""
	}
	for _, p := range []*manifest.Pod{w.in.Desired, w.in.Successor, w.in.Previous, w.order.leaving} {
		if p == nil || !ofCluster(p) || p.UID != inc.UID {
			continue
		}
		if p.Spec.Spec.RestartPolicy == v1.RestartPolicyAlways {
			return ""
		}
		return p.Hash
	}
	return past.Hash
}

// recordTakenOver writes the journals of pods that were taken over, so that a later podd
// knows them.
func (w *worker) recordTakenOver() {
	for i := range w.in.Observed {
		inc := &w.in.Observed[i]
		j := w.past[inc.UID]
		if !inc.Foreign && inc.ID != "" && inc.Labels[runtime.LabelInstance] == "" && !j.Taken {
			j.Taken = true
			w.past = with(w.past, inc.UID, j)
			w.tryWriteJournal(inc.UID, inc.Annotations[runtime.AnnotationHash])
		}
	}
}
