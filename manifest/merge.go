package manifest

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// rank is the precedence of the kinds of source: file, url, api.
func rank(kind string) int {
	return slices.Index([]string{KindAPI, KindURL, KindFile, ""}, kind)
}

// Collect is the batch of a source whose files decoded to these, in their order.
// Of two objects with one key the first wins; pods are left to Merge. The
// caller sets Complete and Files.
func Collect(source, kind string, files ...*File) Batch {
	b := Batch{Source: source, Kind: kind}
	objects := make([]Objects, 0, len(files))
	for _, f := range files {
		b.Pods = append(b.Pods, f.Pods...)
		b.Problems = append(b.Problems, f.Problems...)
		objects = append(objects, f.Objects)
	}
	var problems []Problem
	b.Objects, problems = JoinObjects(objects...)
	b.Problems = append(b.Problems, problems...)
	return b
}

// Merge is the set that the batches of all sources make. A file outranks a URL
// and a URL the API; within a kind the order of the batches counts and within a
// batch the order of its pods. Of two pods with one key, or with one UID, the
// first wins and the other becomes an error Problem, as of two claims with one key
// in files. One that is to end has no name any more. Batches are not written.
func Merge(batches []Batch) *Set {
	ordered := slices.Clone(batches)
	slices.SortStableFunc(ordered, func(a, b Batch) int { return cmp.Compare(rank(b.Kind), rank(a.Kind)) })
	m := merger{
		set: &Set{
			Pods:     map[types.NamespacedName]*Pod{},
			Objects:  map[string]Objects{},
			Complete: map[string]bool{},
		},
		uids: map[types.UID]*Pod{},
	}
	for i := range ordered {
		m.add(&ordered[i])
	}
	m.oneOwner(ordered)
	m.indexClaims()
	m.oneGroup()
	m.set.Problems = distinct(m.set.Problems)
	slices.SortStableFunc(m.set.Files, func(a, b FileState) int { return cmp.Compare(a.Path, b.Path) })
	return m.set
}

type merger struct {
	set  *Set
	uids map[types.UID]*Pod
}

func (m *merger) add(b *Batch) {
	m.set.Problems = append(m.set.Problems, b.Problems...)
	m.set.Files = append(m.set.Files, b.Files...)
	m.set.Complete[b.Source] = m.set.Complete[b.Source] || b.Complete
	if b.Node != nil {
		m.set.Node = b.Node
	}
	if b.Version > 0 {
		put(&m.set.Versions, b.Source, max(b.Version, m.set.Versions[b.Source]))
	}
	m.objects(b)
	for _, p := range b.Pods {
		if p.Deletion != nil {
			put(&m.set.Leaving, p.Key, p)
			continue
		}
		m.pod(p)
	}
}

// objects takes those of a batch. An API server has one of each name.
func (m *merger) objects(b *Batch) {
	if b.Objects.Cluster != nil {
		m.set.Objects[b.Source] = b.Objects
		return
	}
	objects, problems := JoinObjects(m.set.Objects[b.Source], b.Objects)
	m.set.Problems = append(m.set.Problems, problems...)
	m.set.Objects[b.Source] = objects
}

// pod takes a pod unless one before it has its name or its directory.
func (m *merger) pod(p *Pod) {
	first, sameName := m.set.Pods[p.Key]
	other, sameUID := m.uids[p.UID]
	switch {
	case sameName:
		m.lose(p, "metadata.name", "pod "+p.Short().String()+" is at "+first.Origin.String()+", too, which comes first and counts; rename or remove one")
	case sameUID:
		m.lose(p, "metadata.uid", "pod "+other.Short().String()+" ("+other.Origin.String()+") has this uid, too; remove it from one")
	default:
		m.set.Pods[p.Key] = p
		m.uids[p.UID] = p
	}
}

func (m *merger) lose(p *Pod, path, message string) {
	m.set.Problems = append(m.set.Problems, Problem{
		Severity: Error, Path: p.Origin.Path, Position: p.Origin.Position(path),
		Pod: p.Key, Field: path, Message: message, Refused: true,
	})
}

// distinct keeps the first of equal Problems.
func distinct(list []Problem) []Problem {
	seen := make(map[Problem]bool, len(list))
	return slices.DeleteFunc(slices.Clone(list), func(p Problem) bool {
		twice := seen[p]
		seen[p] = true
		return twice
	})
}

// sortProblems sorts by file, place and text.
func sortProblems(list []Problem) {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column), cmp.Compare(a.Message, b.Message))
	})
}
