package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
)

// recordedUID returns the UID that pod p of a file or URL already has on this node; "" if there is
// none. It returns the first of these UIDs that exists:
//
//   - the UID of a running incarnation of version p;
//   - if adopt is set, the UID of a running pod that a kubelet created from the same manifest;
//   - the UID of a stopped incarnation of version p;
//   - the UID in a journal of version p.
//
// So a pod that podd took over from a kubelet keeps its UID when podd is restarted, and is not
// started twice. observed may be nil.
func recordedUID(p *manifest.Pod, pastRecords []state.Record, observed *runtime.Pod, adopt bool) types.UID {
	var kubeletUID, podUID types.UID
	if observed == nil {
		observed = &runtime.Pod{}
	}
	for i := range observed.Incarnations { // newest first
		switch inc := &observed.Incarnations[i]; {
		case inc.Foreign:
			if kubeletUID == "" && adopt && plan.IsLive(inc) && isKubeletPod(p, inc) {
				kubeletUID = inc.UID
			}
		case inc.ID == "" || inc.Annotations[runtime.AnnotationPodHash] != p.Hash:
		case plan.IsLive(inc):
			return inc.UID
		case podUID == "":
			podUID = inc.UID
		}
	}
	if kubeletUID != "" {
		return kubeletUID
	}
	for _, j := range pastRecords {
		if podUID == "" && j.Hash == p.Hash {
			podUID = j.UID
		}
	}
	return podUID
}

// isKubeletPod reports whether a kubelet created incarnation inc from the same kind of source as
// the source of p. It returns false if the kubelet did not compute the UID of the pod from the
// manifest.
func isKubeletPod(p *manifest.Pod, inc *runtime.Incarnation) bool {
	return inc.Labels[runtime.LabelInstance] == "" && inc.Annotations[manifest.AnnotationConfigSource] == p.Origin.Kind &&
		inc.Annotations[manifest.AnnotationConfigHash] == string(inc.UID)
}

// recognize returns the pods in s with the UIDs that they already have on this node. oldSet is the
// previous result, or nil. After r.allWorkersReported is set, a version in oldSet keeps its UID,
// even if it has neither a sandbox nor a journal.
func (r *Router) recognize(s *manifest.Set, oldSet *manifest.RecognizedSet) *manifest.RecognizedSet {
	return manifest.Recognize(s, oldSet, func(p *manifest.Pod) types.UID {
		if r.allWorkersReported && oldSet != nil && oldSet.Set.Pods[p.Key] != nil && state.EqualVersion(oldSet.Set.Pods[p.Key], p) {
			return p.UID
		}
		return recordedUID(p, r.pastRecords[p.Key], r.observed[p.Key], r.o.AdoptKubeletPods)
	})
}
