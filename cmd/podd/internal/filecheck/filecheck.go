// Package filecheck reads manifests from files, directories, URLs and standard input, and
// checks them together.
package filecheck

import (
	"cmp"
	"slices"
	"time"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/merge"
	"podd/manifest/source"
)

// A Result is the result of a check of files.
type Result struct {
	Files    int // number of files that could be read
	Set      *manifest.Set
	Pods     []*manifest.Pod // of Set, in the order of the files
	Problems []manifest.Problem
	order    map[string]int // index of each file by path, for sorting
}

// Check checks files as one source: duplicate pods and conflicting host ports are errors
// too.
func Check(texts []Text, o decode.Options) *Result {
	r := &Result{}
	var files []*manifest.File
	var unreadable []manifest.Problem
	order := map[string]int{}
	for i, t := range texts {
		if _, ok := order[t.path]; !ok {
			order[t.path] = i
		}
		if t.err != nil {
			unreadable = append(unreadable, manifest.Problem{Severity: manifest.Error, Path: t.path, Message: t.err.Error()})
			continue
		}
		o.Kind, o.Path, o.Now = t.kind, t.path, time.Now()
		files = append(files, source.RefuseEmpty(decode.File(t.data, o), t.data, t.path))
	}
	r.Files = len(files)
	all := merge.Files("", manifest.KindFile, files...)
	all.Complete = true
	r.Set = merge.Batches([]manifest.Batch{all})
	for _, f := range files {
		for _, p := range f.Pods {
			if r.Set.Pods[p.Key] == p {
				r.Pods = append(r.Pods, p)
			}
		}
	}
	r.order = order
	r.Add(slices.Concat(unreadable, r.Set.Problems, manifest.HostPortConflicts(r.Pods)))
	return r
}

// Add adds problems and keeps them sorted by file and position.
func (r *Result) Add(problems []manifest.Problem) {
	r.Problems = append(r.Problems, problems...)
	slices.SortStableFunc(r.Problems, func(a, b manifest.Problem) int {
		return cmp.Or(
			cmp.Compare(r.order[a.Path], r.order[b.Path]),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column))
	})
}
