package admission

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// desired returns the desired pod of a name; nil if there is none or all pods stop.
func (in *Input) desired(key types.NamespacedName) *manifest.Pod {
	if in.Set == nil || in.Down {
		return nil
	}
	return in.Set.Pods[key]
}

// leaving returns the pod of a name that its source reports as being deleted; nil if there
// is none.
func (in *Input) leaving(key types.NamespacedName) *manifest.Pod {
	if in.Set == nil {
		return nil
	}
	return in.Set.Deleting[key]
}

// isRemoved reports whether a pod that is not in the set must be stopped. If its source
// reports it as being deleted, that holds for its own UID only: the source of another pod
// with the same name may not have been read yet.
func (in *Input) isRemoved(name *Name) bool {
	if in.isAbsent(name) {
		return true
	}
	p := in.leaving(name.Key)
	return in.HasSnapshot && p != nil && !hasOther(name.Observed, p.UID)
}

// isAbsent reports whether it is known that no source has the pod: the source that had it
// was read completely or, if it is not known which one that was, every source of its kind.
func (in *Input) isAbsent(name *Name) bool {
	if in.Down {
		return true
	}
	if in.Set == nil || !in.HasSnapshot {
		return false
	}
	if kind, configured := in.SourceKinds[name.source]; configured && kind == name.kind {
		return in.Set.Complete[name.source]
	}
	return isComplete(in.Set, in.SourceKinds, cmp.Or(name.kind, kindOf(name.observed())))
}

// hasOther reports whether podd has incarnations of this name with another UID.
func hasOther(p *runtime.Pod, uid types.UID) bool {
	return p != nil && slices.ContainsFunc(p.Incarnations, func(inc runtime.Incarnation) bool { return !inc.Foreign && inc.UID != uid })
}

// earlierNames returns the names that a pod had when the node had its earlier names.
func (in *Input) earlierNames(p *manifest.Pod) (names []types.NamespacedName) {
	if p == nil || p.Suffix == "" {
		return nil
	}
	for _, earlier := range in.EarlierNodes {
		name := p.Short()
		name.Name += "-" + earlier
		names = append(names, name)
	}
	return names
}

// isComplete reports whether set would contain a pod if only its sandbox is known.
// That is so if every source of the kind, or every source if kind is "", was read
// completely, and no file was rejected without a valid version to use instead. The pod may
// be in such a file: a version that could not be stored, because the disk is full, is lost
// when podd stops.
func isComplete(set *manifest.Set, kinds map[string]string, kind string) bool {
	for name, k := range kinds {
		if (kind == "" || k == kind) && !set.Complete[name] {
			return false
		}
	}
	return !slices.ContainsFunc(set.Files, func(f manifest.FileState) bool { return f.Digest == "" })
}

// kindOf returns the kind of source in the annotations of sandboxes; "" if there is none. It
// ignores foreign sandboxes because their sources are not those of this instance.
func kindOf(incarnations []runtime.Incarnation) string {
	for _, inc := range incarnations {
		if kind := inc.Annotations[manifest.AnnotationConfigSource]; kind != "" && !inc.Foreign {
			return kind
		}
	}
	return ""
}
