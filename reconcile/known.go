package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

// knownAs is the UID by which the machine knows a pod of a file or URL, "" for none:
// that of what runs of the version; else, with adopt, that of a kubelet's pod in its
// place; else that of what is left of the version. So a pod that podd took over from a
// kubelet stays the same pod for one that comes after, which starts no other then.
func knownAs(p *manifest.Pod, past []journal, seen *runtime.Pod, adopt bool) types.UID {
	var theirs, left types.UID
	if seen == nil {
		seen = &runtime.Pod{}
	}
	for i := range seen.Incarnations { // the newest first
		switch inc := &seen.Incarnations[i]; {
		case inc.Foreign:
			if theirs == "" && adopt && plan.Live(inc) && kubelets(p, inc) {
				theirs = inc.UID
			}
		case inc.ID == "" || inc.Annotations[runtime.AnnotationHash] != p.Hash:
		case plan.Live(inc):
			return inc.UID
		case left == "":
			left = inc.UID
		}
	}
	if theirs != "" {
		return theirs
	}
	for _, j := range past {
		if left == "" && j.Hash == p.Hash {
			left = j.UID
		}
	}
	return left
}

// kubelets tells whether a sandbox is of a pod that a kubelet had from such a source
// and gave its UID.
func kubelets(p *manifest.Pod, inc *runtime.Incarnation) bool {
	return inc.Labels[runtime.LabelInstance] == "" && inc.Annotations[manifest.AnnotationConfigSource] == p.Origin.Kind &&
		inc.Annotations[manifest.AnnotationConfigHash] == string(inc.UID)
}

// recognize has the newest set speak of pods by the UIDs that the machine knows. What
// has begun under its own keeps that, though nothing of it may be there for a moment.
func (r *Router) recognize() *manifest.Set {
	before := r.known
	r.known = manifest.Recognize(r.read, before, func(p *manifest.Pod) types.UID {
		if r.started && before != nil && before.Set.Pods[p.Key] != nil && sameVersion(before.Set.Pods[p.Key], p) {
			return p.UID
		}
		return knownAs(p, r.past[p.Key], r.last[p.Key], r.o.Adopt)
	})
	return r.known.Set
}
