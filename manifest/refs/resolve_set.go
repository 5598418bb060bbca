package refs

import (
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// A ResolvedSet is a Set with resolved references. It is immutable.
type ResolvedSet struct {
	// Set is the resolved set. A pod that restarts when its objects change has a different
	// version for each content of them.
	Set *manifest.Set
	// Refs has an entry for each pod that refers to objects.
	Refs    map[types.NamespacedName]*Resolved
	decoded map[types.NamespacedName]*manifest.Pod // the pods as they are in the manifests
}

// ResolveSet resolves the references of a set's pods. Values that are equal to those in
// before, which may be nil, keep their pointers. The salt must be the same after a restart
// of podd, and must be secret from everyone who may not read Secrets. storedClaims contains the
// claims with data in a directory that podd manages; nil means none.
func ResolveSet(s *manifest.Set, salt string, storedClaims map[types.NamespacedName]bool, before *ResolvedSet) *ResolvedSet {
	if before == nil {
		before = &ResolvedSet{Set: &manifest.Set{}}
	}
	all := &ResolvedSet{Refs: map[types.NamespacedName]*Resolved{}, decoded: s.Pods}
	set := *s
	set.Objects = make(map[string]manifest.Objects, len(s.Objects))
	for name, o := range s.Objects {
		o.StoredClaims = storedClaims
		set.Objects[name] = o
	}
	set.Pods = make(map[types.NamespacedName]*manifest.Pod, len(s.Pods))
	r := newResolver(&set)
	for key, p := range s.Pods {
		refs := r.resolve(p, salt, before.Refs[key])
		if refs != nil {
			all.Refs[key] = refs
		}
		switch was := before.Refs[key]; {
		case p.Traits.RefsFromServer:
			set.Pods[key] = r.source(p.Origin.Source).withHandler(p, before.Set.Pods[key])
		case !manifest.RestartsOnChange(p) || refs == nil:
			set.Pods[key] = p
		case before.decoded[key] == p && was != nil && was.Files == refs.Files && was.Env == refs.Env:
			set.Pods[key] = before.Set.Pods[key]
		default:
			set.Pods[key] = p.WithContent(refs.Files, refs.Env)
		}
	}
	all.Set = &set
	return all
}

// withHandler returns p with the handler of its RuntimeClass, if the API server has returned
// it. before is the previous result for this or another version, or nil.
func (o *lookup) withHandler(p, before *manifest.Pod) *manifest.Pod {
	class := p.Spec.Spec.RuntimeClassName
	if class == nil {
		return p
	}
	handler, known := o.server.Handlers[*class]
	if !known {
		return p
	}
	if before != nil && before.Spec == p.Spec && before.Handler != nil && *before.Handler == handler {
		return before
	}
	v := *p
	v.Handler = &handler
	return &v
}
