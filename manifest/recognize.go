package manifest

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// A RecognizedSet is a Set whose pods have the UIDs under which this node already runs them. It is
// immutable.
type RecognizedSet struct {
	Set     *Set
	decoded map[types.NamespacedName]*Pod // pods whose UID was replaced, as decoded
}

// Recognize returns s with the UIDs under which this node runs its pods. find returns the
// recorded UID of a pod, or "". Recognize calls find only for pods whose UID is computed, and
// not for pods with AnnotationRestartOnChange, because each content of their objects is a new
// version. It ignores a UID that is not safe in a path or that another pod of s has. before is
// the previous result, or nil: a pod of the same version keeps the UID that it has in before,
// and an unchanged pod keeps its pointer.
func Recognize(s *Set, before *RecognizedSet, find func(*Pod) types.UID) *RecognizedSet {
	k, found := &RecognizedSet{Set: s, decoded: map[types.NamespacedName]*Pod{}}, map[types.NamespacedName]types.UID{}
	for key, p := range s.Pods {
		if p.FixedUID || RestartsOnChange(p) {
			continue
		}
		uid := before.uid(p)
		if uid == "" {
			uid = find(p)
		}
		if uid != p.UID && SafeUID(uid) {
			found[key] = uid
		}
	}
	if len(found) == 0 {
		return k
	}
	set := *s
	set.Pods, k.Set = maps.Clone(s.Pods), &set
	taken := make(map[types.UID]bool, len(s.Pods))
	for _, p := range s.Pods {
		taken[p.UID] = true
	}
	for _, key := range slices.SortedFunc(maps.Keys(found), CompareKeys) {
		p, uid := s.Pods[key], found[key]
		if taken[uid] {
			continue
		}
		taken[uid], k.decoded[key] = true, p
		if before != nil && before.decoded[key] == p {
			set.Pods[key] = before.Set.Pods[key]
		} else {
			set.Pods[key] = p.withUID(uid)
		}
	}
	return k
}

// uid returns the UID that k has for the version of p; "" if k has none.
func (k *RecognizedSet) uid(p *Pod) types.UID {
	if k == nil || k.decoded[p.Key] == nil || k.decoded[p.Key].Hash != p.Hash {
		return ""
	}
	return k.Set.Pods[p.Key].UID
}

// withUID returns p with a fixed UID.
func (p *Pod) withUID(uid types.UID) *Pod {
	v := p.clone()
	v.UID, v.FixedUID = uid, true
	v.Spec.UID, v.Spec.Annotations[AnnotationConfigHash] = uid, string(uid)
	return v
}
