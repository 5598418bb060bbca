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
	"podd/manifest/order"
	"podd/manifest/source"
)

// A Result is the result of Check.
type Result struct {
	InputCount int             // number of inputs that could be read
	Set        *manifest.Set   // valid pods and objects of all inputs
	Pods       []*manifest.Pod // pods of Set in the order of the inputs
	Problems   []manifest.Problem
	inputIndex map[string]int // index of each input by path, for sorting
}

// Check decodes and validates all inputs as if they were the files of one source. Duplicate pods are
// therefore problems. Check does not report conflicts of host ports.
func Check(inputs []Input, o decode.Options) *Result {
	r := &Result{}
	var files []*manifest.File
	var unreadable []manifest.Problem
	order := map[string]int{}
	for i, in := range inputs {
		if _, ok := order[in.path]; !ok {
			order[in.path] = i
		}
		if in.err != nil {
			p := manifest.Problem{Severity: manifest.Error, Path: in.path, Message: in.err.Error()}
			if in.isIgnored {
				p.Severity = manifest.Warning
			}
			unreadable = append(unreadable, p)
			continue
		}
		o.Kind, o.Path, o.Now = in.kind, in.path, time.Now()
		files = append(files, source.RefuseEmpty(decode.File(in.data, o), in.data, in.path))
	}
	r.InputCount = len(files)
	batch := merge.Files("", manifest.KindFile, files...)
	batch.IsComplete = true
	r.Set = merge.Batches([]manifest.Batch{batch})
	for _, f := range files {
		for _, p := range f.Pods {
			if r.Set.Pods[p.Key] == p {
				r.Pods = append(r.Pods, p)
			}
		}
	}
	r.inputIndex = order
	r.AddProblems(slices.Concat(unreadable, r.Set.Problems))
	return r
}

// AddProblems adds problems to r.Problems, and keeps r.Problems sorted by input and position.
func (r *Result) AddProblems(problems []manifest.Problem) {
	r.Problems = append(r.Problems, problems...)
	order.Stable(r.Problems, func(a, b manifest.Problem) int {
		return cmp.Or(
			cmp.Compare(r.inputIndex[a.Path], r.inputIndex[b.Path]),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column))
	})
}
