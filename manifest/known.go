package manifest

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Known is a Set whose pods have the UIDs that the machine knows them by. Immutable.
type Known struct {
	Set     *Set
	written map[types.NamespacedName]*Pod // those that have another than they were written with
}

// Recognize gives pods of files and URLs, for which no user fixed a UID, the one that
// find has for them, "" for none. One that a pod got in before, which may be nil, it
// keeps for as long as it is the same version, and its pointer for as long as it is
// the same pod. A UID that is no name of a directory, or another pod's, is none; nor
// has a pod one that is another version for each content of its objects.
func Recognize(s *Set, before *Known, find func(*Pod) types.UID) *Known {
	k, found := &Known{Set: s, written: map[types.NamespacedName]*Pod{}}, map[types.NamespacedName]types.UID{}
	for key, p := range s.Pods {
		if p.FixedUID || p.Origin.Kind == KindAPI || RestartsOnChange(p) {
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
	for _, key := range slices.SortedFunc(maps.Keys(found), byName) {
		p, uid := s.Pods[key], found[key]
		if taken[uid] {
			continue
		}
		taken[uid], k.written[key] = true, p
		if before != nil && before.written[key] == p {
			set.Pods[key] = before.Set.Pods[key]
		} else {
			set.Pods[key] = p.under(uid)
		}
	}
	return k
}

// uid is what a version got before; "" for none.
func (k *Known) uid(p *Pod) types.UID {
	if k == nil || k.written[p.Key] == nil || k.written[p.Key].Hash != p.Hash {
		return ""
	}
	return k.Set.Pods[p.Key].UID
}

// under is p with a UID that it keeps, as if a user had fixed it.
func (p *Pod) under(uid types.UID) *Pod {
	v := p.clone()
	v.UID, v.FixedUID = uid, true
	v.Spec.UID, v.Spec.Annotations[AnnotationConfigHash] = uid, string(uid)
	return v
}
