package admission

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// desired returns the desired pod of a name; nil if there is none, or if in.StopAllReason is set.
func (in *Input) desired(key types.NamespacedName) *manifest.Pod {
	if in.Set == nil || in.StopAllReason != "" {
		return nil
	}
	return in.Set.Pods[key]
}

// terminatingPod returns the pod of a name that its source is deleting; nil if there is none.
func (in *Input) terminatingPod(key types.NamespacedName) *manifest.Pod {
	if in.Set == nil {
		return nil
	}
	return in.Set.TerminatingPods[key]
}

// isRemoved reports whether the pod of a name without a desired pod must be stopped. This is the
// case if no source contains the pod, or if its source is deleting the pod. During such a deletion,
// isRemoved returns false if podd has incarnations of the name with another UID, because their
// source may not have been read yet.
func (in *Input) isRemoved(name *NameFacts) bool {
	if in.isAbsent(name) {
		return true
	}
	p := in.terminatingPod(name.Key)
	return in.HasSnapshot && p != nil && !hasOtherUID(name.Observed, p.UID)
}

// isAbsent reports whether it is certain that no source contains the pod. This requires that the
// source that last contained the pod was read completely. If that source is unknown, all sources of
// its kind must have been read completely.
func (in *Input) isAbsent(name *NameFacts) bool {
	if in.StopAllReason != "" {
		return true
	}
	if in.Set == nil || !in.HasSnapshot {
		return false
	}
	if kind, isConfigured := in.SourceKinds[name.sourceName]; isConfigured && kind == name.sourceKind {
		return in.Set.CompleteSources[name.sourceName]
	}
	return isComplete(in.Set, in.SourceKinds, cmp.Or(name.sourceKind, sourceKindOf(name.observedIncarnations())))
}

// hasOtherUID reports whether p has an incarnation of podd with a UID other than uid. p may be nil.
func hasOtherUID(p *runtime.Pod, uid types.UID) bool {
	return p != nil && slices.ContainsFunc(p.Incarnations, func(inc runtime.Incarnation) bool { return !inc.Foreign && inc.UID != uid })
}

// earlierNames returns the names that pod p had under each node name in EarlierNodeNames. p may be
// nil.
func (in *Input) earlierNames(p *manifest.Pod) (names []types.NamespacedName) {
	if p == nil || p.NameSuffix == "" {
		return nil
	}
	for _, nodeName := range in.EarlierNodeNames {
		name := p.ManifestKey()
		name.Name += "-" + nodeName
		names = append(names, name)
	}
	return names
}

// isComplete reports whether set contains all desired pods of the sources of a kind; kind "" means
// all kinds. It returns false if a source of the kind was not read completely. It also returns
// false if podd has no valid content of a file, because the file may contain any pod. podd has no
// valid content if a file is rejected, and its earlier content was not stored before podd was
// restarted, for example because the disk was full.
func isComplete(set *manifest.Set, kinds map[string]string, kind string) bool {
	for name, k := range kinds {
		if (kind == "" || k == kind) && !set.CompleteSources[name] {
			return false
		}
	}
	return !slices.ContainsFunc(set.FileStates, func(f manifest.FileState) bool { return f.Digest == "" })
}

// sourceKindOf returns the kind of source in the annotations of sandboxes; "" if there is none. It
// ignores foreign sandboxes, because their pods come from the sources of another agent.
func sourceKindOf(incarnations []runtime.Incarnation) string {
	for _, inc := range incarnations {
		if kind := inc.Annotations[manifest.AnnotationConfigSource]; kind != "" && !inc.Foreign {
			return kind
		}
	}
	return ""
}
