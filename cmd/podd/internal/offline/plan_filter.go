package offline

import (
	"path/filepath"
	"slices"
	"strings"

	"podd/cmd/podd/internal/paths"
	"podd/manifest"
	"podd/reconcile"
	"podd/server"
)

// A planFilter selects the pods and problems that the arguments of podd plan name.
type planFilter struct {
	pods, files []string
	running     *server.View // nil: no podd runs
}

// includes reports whether a pod is selected.
func (f planFilter) includes(p reconcile.Planned) bool {
	short := ""
	if p.Pod != nil {
		short = strings.TrimSuffix(p.Key.Name, "-"+p.Pod.Spec.Spec.NodeName)
	}
	for _, name := range f.pods {
		if name == p.Key.Name || name == short || name == p.Key.Namespace+"/"+short {
			return true
		}
	}
	if p.Pod != nil {
		return f.hasFile(p.Pod.Origin.Path)
	}
	if f.running == nil {
		return false
	}
	// A pod that was removed from a file still has the path of that file in the running
	// podd.
	view := f.running.Pod(server.Key(p.Key))
	return view != nil && f.hasFile(view.Path)
}

// hasFile reports whether path is one of the named files or in a named directory.
func (f planFilter) hasFile(path string) bool { return path != "" && isWithin(path, f.files) }

// problems returns those of the named files, or all if only pods are named.
func (f planFilter) problems(all []manifest.Problem) []manifest.Problem {
	if len(f.files) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(p manifest.Problem) bool { return !f.hasFile(p.Path) })
}

// unreadFiles returns the files that none of the sources reads.
func unreadFiles(files, sources []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(path string) bool { return isWithin(path, sources) })
}

// isWithin reports whether path is one of places or a file directly in one.
func isWithin(path string, places []string) bool {
	for _, place := range places {
		if paths.SameFile(path, place) || paths.SameFile(filepath.Dir(path), place) {
			return true
		}
	}
	return false
}
