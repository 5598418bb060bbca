package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
)

// recordedUID returns the UID by which this node knows a pod of a file or URL; "" if it
// does not. It is that of a running incarnation of the version; else, with adopt, that of a
// kubelet's pod for the same manifest; else that of stopped incarnations or journals of the
// version. So a pod that podd took over from a kubelet stays the same pod for a later podd,
// which then starts no other one.
func recordedUID(p *manifest.Pod, past []state.Record, seen *runtime.Pod, adopt bool) types.UID {
	var theirs, left types.UID
	if seen == nil {
		seen = &runtime.Pod{}
	}
	for i := range seen.Incarnations { // the newest first
		switch inc := &seen.Incarnations[i]; {
		case inc.Foreign:
			if theirs == "" && adopt && plan.Live(inc) && isKubeletPod(p, inc) {
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

// isKubeletPod reports whether a kubelet created a sandbox for a pod of such a source and
// chose its UID.
func isKubeletPod(p *manifest.Pod, inc *runtime.Incarnation) bool {
	return inc.Labels[runtime.LabelInstance] == "" && inc.Annotations[manifest.AnnotationConfigSource] == p.Origin.Kind &&
		inc.Annotations[manifest.AnnotationConfigHash] == string(inc.UID)
}

// recognize gives the pods of a set the UIDs by which this node knows them. A pod that was
// started with its own UID keeps that, even if nothing of it exists at the moment. before is
// the previous result; it may be nil.
func (r *Router) recognize(s *manifest.Set, before *manifest.RecognizedSet) *manifest.RecognizedSet {
	return manifest.Recognize(s, before, func(p *manifest.Pod) types.UID {
		if r.started && before != nil && before.Set.Pods[p.Key] != nil && state.SameVersion(before.Set.Pods[p.Key], p) {
			return p.UID
		}
		return recordedUID(p, r.past[p.Key], r.observed[p.Key], r.o.Adopt)
	})
}
