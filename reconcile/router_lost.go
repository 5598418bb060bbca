package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// owner is whose a directory without a journal is.
type owner int

const (
	nobody owner = iota
	wantedPod
	seenPod
	foreignPod
)

// ownerOf finds a UID among what is wanted and what is seen.
func ownerOf(uid types.UID, wanted map[types.NamespacedName]*manifest.Pod, seen map[types.NamespacedName]*runtime.Pod) owner {
	for _, p := range wanted {
		if p.UID == uid {
			return wantedPod
		}
	}
	for _, p := range seen {
		if p == nil {
			continue
		}
		for i := range p.Incarnations {
			switch inc := &p.Incarnations[i]; {
			case inc.UID != uid:
			case inc.Foreign:
				return foreignPod
			default:
				return seenPod
			}
		}
	}
	return nobody
}

// takeLost has directories without a journal torn down, once all sources and
// the runtime were seen and none of them knows the UID. Those of pods that are
// wanted or run are their workers' business; those of others' pods, of a kubelet
// that had this root before say, are left alone for as long as they are seen.
func (r *Router) takeLost(ctx context.Context) {
	if len(r.lost) == 0 || !r.seen || r.set == nil {
		return
	}
	for name := range r.o.SourceKinds {
		if !r.set.Complete[name] {
			return
		}
	}
	var kept []types.UID
	for _, uid := range r.lost {
		switch ownerOf(uid, r.set.Pods, r.last) {
		case nobody:
			key := nameOfLost(uid)
			r.entry(ctx, key, []journal{{Key: key, UID: uid, Volumes: true}})
		case foreignPod:
			kept = append(kept, uid)
		}
	}
	r.lost = kept
}
