package manifest

import (
	"k8s.io/apimachinery/pkg/types"
)

// Bound is a Set whose pods have their objects. Immutable.
type Bound struct {
	// Set is the one that was bound, but a pod that is to restart when its
	// objects change is another version for each content of them.
	Set *Set
	// Supplies has one for every pod that refers to objects.
	Supplies map[types.NamespacedName]*Supply
	written  map[types.NamespacedName]*Pod // the pods as they stand in the manifests
}

// Bind looks up the objects of a set's pods. What is as it was in before, which
// may be nil, keeps its pointer. The salt must outlive podd and be known to
// nobody who may not read Secrets. kept are the claims, nil for none, whose data
// is in a directory of podd's.
func Bind(s *Set, salt string, kept map[types.NamespacedName]bool, before *Bound) *Bound {
	if before == nil {
		before = &Bound{Set: &Set{}}
	}
	b := &Bound{Supplies: map[types.NamespacedName]*Supply{}, written: s.Pods}
	bound := *s
	bound.Objects = make(map[string]Objects, len(s.Objects))
	for name, o := range s.Objects {
		o.Kept = kept
		bound.Objects[name] = o
	}
	bound.Pods = make(map[types.NamespacedName]*Pod, len(s.Pods))
	for key, p := range s.Pods {
		supply := SupplyOf(p, &bound, salt, before.Supplies[key])
		if supply != nil {
			b.Supplies[key] = supply
		}
		switch was := before.Supplies[key]; {
		case p.Origin.Kind == KindAPI:
			bound.Pods[key] = p.handledBy(bound.Objects[p.Origin.Source].Cluster, before.Set.Pods[key])
		case !RestartsOnChange(p) || supply == nil:
			bound.Pods[key] = p
		case before.written[key] == p && was != nil && was.Files == supply.Files && was.Env == supply.Env:
			bound.Pods[key] = before.Set.Pods[key]
		default:
			bound.Pods[key] = p.holding(supply)
		}
	}
	b.Set = &bound
	return b
}

// AnnotationRestartOnChange, when "true", has a pod of a manifest replaced as an edit
// of it would once an object changes that its variables or files are made of.
const AnnotationRestartOnChange = "podd/restart-on-change"

// RestartsOnChange tells whether a pod has that annotation. It is none of the
// cluster's, where a pod is one for as long as its UID.
func RestartsOnChange(p *Pod) bool {
	return p.Origin.Kind != KindAPI && p.Spec.Annotations[AnnotationRestartOnChange] == "true"
}

// holding is the version of p for one content of its objects.
func (p *Pod) holding(s *Supply) *Pod {
	v := *p
	v.Spec = p.Spec.DeepCopy()
	v.Hash = hashVersion + digest("holding", p.Hash, s.Files, s.Env)
	if p.FixedUID {
		return &v
	}
	v.UID = types.UID(digest("holding", string(p.UID), s.Files, s.Env))
	v.Spec.UID, v.Spec.Annotations[AnnotationConfigHash] = v.UID, string(v.UID)
	return &v
}
