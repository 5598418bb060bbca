package reconcile

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

// takeOver has what a kubelet began of a cluster's pod that may end be podd's own, as
// it runs: ended and made anew it would run twice, which its policy may forbid.
// Other pods of a kubelet are replaced. What was taken over once is remembered, and
// is podd's also when nobody wants it any more, or asks podd to take over.
func (w *worker) takeOver(seen []runtime.Incarnation) []runtime.Incarnation {
	cloned := false
	for i := range seen {
		hash := w.takes(&seen[i])
		if hash == "" {
			continue
		}
		if !cloned { // what was observed is everybody's
			seen, cloned = slices.Clone(seen), true
		}
		inc := &seen[i]
		inc.Foreign, inc.Annotations = false, maps.Clone(inc.Annotations)
		inc.Annotations[runtime.AnnotationHash] = hash
	}
	return seen
}

// takes is the version that a foreign sandbox is taken for; "" for none.
func (w *worker) takes(inc *runtime.Incarnation) string {
	if !inc.Foreign || inc.Labels[runtime.LabelInstance] != "" || inc.Annotations[manifest.AnnotationConfigSource] != manifest.KindAPI {
		return ""
	}
	past := w.past[inc.UID]
	if !w.order.node.Adopt && !past.Taken {
		return ""
	}
	for _, p := range []*manifest.Pod{w.in.Desired, w.in.Successor, w.in.Leaving, w.order.leaving} {
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

// noteTaken has a podd that comes after know what was taken over, wanted or not.
func (w *worker) noteTaken() {
	for i := range w.in.Observed {
		inc := &w.in.Observed[i]
		j := w.past[inc.UID]
		if !inc.Foreign && inc.ID != "" && inc.Labels[runtime.LabelInstance] == "" && !j.Taken {
			j.Taken = true
			w.past = with(w.past, inc.UID, j)
			w.rememberSoon(inc.UID, inc.Annotations[runtime.AnnotationHash])
		}
	}
}
