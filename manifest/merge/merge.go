// Package merge combines the pods and objects of several manifests and sources.
//
//	Files ──▶ one Batch per source ── Batches ──▶ Set
//
// If two manifests contain a pod or object with the same name, the package decides which of the
// two is used.
package merge

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/order"
	"podd/manifest/refs"
)

// precedence returns the precedence of a kind of source. Files have the highest precedence, then
// URLs, then the API.
func precedence(kind string) int {
	return slices.Index([]string{manifest.KindAPI, manifest.KindURL, manifest.KindFile, ""}, kind)
}

// Files returns a Batch with the pods and objects of these files, in the order of the files. If two
// objects have the same key, only the first is in the Batch. The Batch contains all pods, because
// Batches decides between pods with the same key. The caller must set IsComplete and FileStates.
func Files(source, kind string, files ...*manifest.File) manifest.Batch {
	b := manifest.Batch{Source: source, Kind: kind}
	objects := make([]manifest.Objects, 0, len(files))
	for _, f := range files {
		b.Pods = append(b.Pods, f.Pods...)
		b.Problems = append(b.Problems, f.Problems...)
		objects = append(objects, f.Objects)
	}
	var problems []manifest.Problem
	b.Objects, problems = Objects(objects...)
	b.Problems = append(b.Problems, problems...)
	return b
}

// Batches returns the Set for the batches of all sources. It does not modify the batches.
//
// If two pods have the same key or UID, the pod with the higher precedence is used and the other
// pod becomes an error Problem. Two claims with the same key in different file sources are handled
// in the same way. A file takes precedence over a URL, and a URL over the API. Between two sources
// of the same kind, the pod of the first batch is used, and in one batch the first pod. A pod with
// a Deletion does not reserve its name.
func Batches(batches []manifest.Batch) *manifest.Set {
	byPrecedence := slices.Clone(batches)
	order.Stable(byPrecedence, func(a, b manifest.Batch) int { return cmp.Compare(precedence(b.Kind), precedence(a.Kind)) })
	m := merger{
		set: &manifest.Set{
			Pods:            map[types.NamespacedName]*manifest.Pod{},
			ObjectsBySource: map[string]manifest.Objects{},
			CompleteSources: map[string]bool{},
		},
		podsByUID:      map[types.UID]*manifest.Pod{},
		claimsBySource: map[string]*refs.Claims{},
	}
	for i := range byPrecedence {
		m.addBatch(&byPrecedence[i])
	}
	m.dropSharedClaims(byPrecedence)
	m.warnSharedGroups()
	m.set.Problems = removeDuplicates(m.set.Problems)
	order.Stable(m.set.FileStates, func(a, b manifest.FileState) int { return cmp.Compare(a.Path, b.Path) })
	return m.set
}

type merger struct {
	set            *manifest.Set
	podsByUID      map[types.UID]*manifest.Pod
	claimsBySource map[string]*refs.Claims
}

// addBatch adds a batch to the set. The batches must be added in the order of their precedence.
func (m *merger) addBatch(b *manifest.Batch) {
	m.set.Problems = append(m.set.Problems, b.Problems...)
	m.set.FileStates = append(m.set.FileStates, b.FileStates...)
	m.set.CompleteSources[b.Source] = m.set.CompleteSources[b.Source] || b.IsComplete
	if b.Node != nil {
		m.set.Node = b.Node
	}
	if b.Version > 0 {
		if m.set.BatchVersions == nil {
			m.set.BatchVersions = map[string]uint64{}
		}
		m.set.BatchVersions[b.Source] = max(b.Version, m.set.BatchVersions[b.Source])
	}
	m.addObjects(b)
	for _, p := range b.Pods {
		if p.Deletion != nil {
			if m.set.TerminatingPods == nil {
				m.set.TerminatingPods = map[types.NamespacedName]*manifest.Pod{}
			}
			m.set.TerminatingPods[p.Key] = p
			continue
		}
		m.addPod(p)
	}
}

// addObjects adds the objects of a batch. Objects of an API server need no merge, because their
// names are unique.
func (m *merger) addObjects(b *manifest.Batch) {
	if b.Objects.IsFromServer() {
		m.set.ObjectsBySource[b.Source] = b.Objects
		return
	}
	objects, problems := Objects(m.set.ObjectsBySource[b.Source], b.Objects)
	m.set.Problems = append(m.set.Problems, problems...)
	m.set.ObjectsBySource[b.Source] = objects
}

// addPod adds p to the set, unless the set already has a pod with the same name or the same UID. Two
// pods with the same UID would use the same directory.
func (m *merger) addPod(p *manifest.Pod) {
	podWithName, isNameTaken := m.set.Pods[p.Key]
	podWithUID, isUIDTaken := m.podsByUID[p.UID]
	switch {
	case isNameTaken:
		m.refuse(p, "metadata.name", "pod "+p.ManifestKey().String()+" is also defined at "+podWithName.Origin.String()+", which takes precedence; rename or remove one")
	case isUIDTaken:
		m.refuse(p, "metadata.uid", "pod "+podWithUID.ManifestKey().String()+" ("+podWithUID.Origin.String()+") has the same uid; remove the uid from one of the pods")
	default:
		m.set.Pods[p.Key] = p
		m.podsByUID[p.UID] = p
	}
}

// refuse adds an error Problem of p about the field at path.
func (m *merger) refuse(p *manifest.Pod, path, message string) {
	m.set.Problems = append(m.set.Problems, manifest.Problem{
		Severity: manifest.Error, Path: p.Origin.Path, Position: p.Origin.Position(path),
		Pod: p.Key, FieldPath: path, Message: message, CausesRefusal: true,
	})
}

func removeDuplicates(list []manifest.Problem) []manifest.Problem {
	isAdded := make(map[manifest.Problem]bool, len(list))
	return slices.DeleteFunc(slices.Clone(list), func(p manifest.Problem) bool {
		isDuplicate := isAdded[p]
		isAdded[p] = true
		return isDuplicate
	})
}
