package main

import (
	"path/filepath"
	"strings"

	"podd/manifest"
	"podd/reconcile"
	"podd/server"
)

// wish is what a plan is asked about.
type wish struct {
	pods, files []string
	running     *server.View // nil: no podd runs
}

// of tells whether it is asked about a pod.
func (w wish) of(p reconcile.Planned) bool {
	short := ""
	if p.Pod != nil {
		short = strings.TrimSuffix(p.Key.Name, "-"+p.Pod.Spec.Spec.NodeName)
	}
	for _, name := range w.pods {
		if name == p.Key.Name || name == short || name == p.Key.Namespace+"/"+short {
			return true
		}
	}
	if p.Pod != nil {
		return w.has(p.Pod.Origin.Path)
	}
	if w.running == nil {
		return false
	}
	// Taken out of a file, it is told of by that.
	seen := w.running.Pod(server.Key(p.Key))
	return seen != nil && w.has(seen.Path)
}

// has tells whether a file is one of those that were named, or in one.
func (w wish) has(path string) bool { return path != "" && within(path, w.files) }

// problems are those of the files that were named; all when only pods were.
func (w wish) problems(all []manifest.Problem) []manifest.Problem {
	if len(w.files) == 0 {
		return all
	}
	return filter(all, func(p manifest.Problem) bool { return w.has(p.Path) })
}

// unread are the files that none of the sources reads.
func unread(files, sources []string) []string {
	return filter(files, func(f string) bool { return !within(f, sources) })
}

// within tells whether a path is one of some places or lies in one, as a source
// has its files.
func within(path string, places []string) bool {
	for _, place := range places {
		if sameFile(path, place) || sameFile(filepath.Dir(path), place) {
			return true
		}
	}
	return false
}
