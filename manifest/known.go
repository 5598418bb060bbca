package manifest

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// A Known is a Set whose pods have the UIDs under which this node already runs them. It is
// immutable.
type Known struct {
	Set     *Set
	decoded map[types.NamespacedName]*Pod // pods whose UID was replaced, as decoded
}

// Recognize gives pods of files and URLs without a UID set by a user the UID that find
// returns, or none if that is "". A pod keeps the UID that it got in before, which may be
// nil, as long as its version is the same, and its pointer as long as the pod is the same.
// A UID that cannot be the name of a directory, or that another pod has, is ignored. A pod
// with AnnotationRestartOnChange is never changed, because each content of its objects is a
// new version.
func Recognize(s *Set, before *Known, find func(*Pod) types.UID) *Known {
	k, found := &Known{Set: s, decoded: map[types.NamespacedName]*Pod{}}, map[types.NamespacedName]types.UID{}
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

// uid returns the UID that this version got before; "" if none.
func (k *Known) uid(p *Pod) types.UID {
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
