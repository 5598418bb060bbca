package manifest

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/order"
)

// A RecognizedSet is a Set in which pods that already run on this node have the UIDs under which
// they run. It is immutable.
type RecognizedSet struct {
	Set       *Set
	originals map[types.NamespacedName]*Pod // for each pod with a replaced UID, the pod before the replacement
}

// Recognize returns a RecognizedSet with the pods of s. The function find returns the UID under
// which this node already runs a pod, or "". Recognize calls find only for pods with a computed
// UID. It does not call find for pods with AnnotationRestartOnChange, because a change of their
// objects makes a new version. Recognize ignores a UID that is not safe in a path or that another
// pod of s has.
//
// The parameter previous is the previous result, or nil. A pod of the same version keeps the UID
// that it has in the previous result, and an unchanged pod keeps its pointer.
func Recognize(s *Set, previous *RecognizedSet, find func(*Pod) types.UID) *RecognizedSet {
	k, uidsByKey := &RecognizedSet{Set: s, originals: map[types.NamespacedName]*Pod{}}, map[types.NamespacedName]types.UID{}
	for key, p := range s.Pods {
		if p.HasFixedUID || RestartsOnChange(p) {
			continue
		}
		uid := previous.recognizedUID(p)
		if uid == "" {
			uid = find(p)
		}
		if uid != p.UID && IsSafeUID(uid) {
			uidsByKey[key] = uid
		}
	}
	if len(uidsByKey) == 0 {
		return k
	}
	setCopy := *s
	setCopy.Pods, k.Set = maps.Clone(s.Pods), &setCopy
	usedUIDs := make(map[types.UID]bool, len(s.Pods))
	for _, p := range s.Pods {
		usedUIDs[p.UID] = true
	}
	for _, key := range order.Collect(maps.Keys(uidsByKey), CompareKeys) {
		p, uid := s.Pods[key], uidsByKey[key]
		if usedUIDs[uid] {
			continue
		}
		usedUIDs[uid], k.originals[key] = true, p
		if previous != nil && previous.originals[key] == p {
			setCopy.Pods[key] = previous.Set.Pods[key]
		} else {
			setCopy.Pods[key] = p.withUID(uid)
		}
	}
	return k
}

// recognizedUID returns the UID in k that replaced the computed UID of p. It returns "" if k
// contains no such UID for this version of p.
func (k *RecognizedSet) recognizedUID(p *Pod) types.UID {
	if k == nil || k.originals[p.Key] == nil || k.originals[p.Key].Hash != p.Hash {
		return ""
	}
	return k.Set.Pods[p.Key].UID
}

// withUID returns p with a fixed UID.
func (p *Pod) withUID(uid types.UID) *Pod {
	v := p.clone()
	v.UID, v.HasFixedUID = uid, true
	v.Object.UID, v.Object.Annotations[AnnotationConfigHash] = uid, string(uid)
	return v
}
