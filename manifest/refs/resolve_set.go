package refs

import (
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// A ResolvedSet is a Set with resolved references. It is immutable.
type ResolvedSet struct {
	// Set is the set that was passed to ResolveSet, with three changes. Its Objects have
	// StoredClaims. A pod of an API server has its ServerRuntimeHandler. A pod with
	// AnnotationRestartOnChange has a version (Hash and UID) that depends on the content of its
	// objects.
	Set *manifest.Set
	// Refs contains an entry for each pod that refers to objects.
	Refs      map[types.NamespacedName]*Resolved
	originals map[types.NamespacedName]*manifest.Pod // the pods of the set that was passed to ResolveSet
}

// ResolveSet resolves the references of the pods of a set. The parameter previous is the previous
// result, or nil. If a value is equal to a value in the previous result, the new result contains
// the previous pointer. The salt is a key for the digests of objects. It must be the same after a
// restart of podd, and users who may not read Secrets must not know it. storedClaims contains the
// claims with data in a directory that podd manages; it may be nil.
func ResolveSet(s *manifest.Set, salt string, storedClaims map[types.NamespacedName]bool, previous *ResolvedSet) *ResolvedSet {
	if previous == nil {
		previous = &ResolvedSet{Set: &manifest.Set{}}
	}
	result := &ResolvedSet{Refs: map[types.NamespacedName]*Resolved{}, originals: s.Pods}
	setCopy := *s
	setCopy.ObjectsBySource = make(map[string]manifest.Objects, len(s.ObjectsBySource))
	for name, o := range s.ObjectsBySource {
		o.StoredClaims = storedClaims
		setCopy.ObjectsBySource[name] = o
	}
	setCopy.Pods = make(map[types.NamespacedName]*manifest.Pod, len(s.Pods))
	r := newResolver(&setCopy)
	for key, p := range s.Pods {
		refs := r.resolve(p, salt, previous.Refs[key])
		if refs != nil {
			result.Refs[key] = refs
		}
		switch previousRefs := previous.Refs[key]; {
		case p.Traits.HasRefsFromServer:
			setCopy.Pods[key] = r.lookupFor(p.Origin.Source).withHandler(p, previous.Set.Pods[key])
		case !manifest.RestartsOnChange(p) || refs == nil:
			setCopy.Pods[key] = p
		case previous.originals[key] == p && previousRefs != nil && previousRefs.FilesDigest == refs.FilesDigest && previousRefs.EnvDigest == refs.EnvDigest:
			setCopy.Pods[key] = previous.Set.Pods[key]
		default:
			setCopy.Pods[key] = p.WithContentDigests(refs.FilesDigest, refs.EnvDigest)
		}
	}
	result.Set = &setCopy
	return result
}

// withHandler returns p with the handler of its RuntimeClass, if the API server has returned the
// RuntimeClass. The parameter previous is the previous result for this pod name, or nil.
func (o *lookup) withHandler(p, previous *manifest.Pod) *manifest.Pod {
	class := p.Object.Spec.RuntimeClassName
	if class == nil {
		return p
	}
	handler, ok := o.cluster.RuntimeHandlers[*class]
	if !ok {
		return p
	}
	if previous != nil && previous.Object == p.Object && previous.ServerRuntimeHandler != nil && *previous.ServerRuntimeHandler == handler {
		return previous
	}
	v := *p
	v.ServerRuntimeHandler = &handler
	return &v
}
