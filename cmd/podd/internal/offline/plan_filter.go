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

// A planFilter selects pods and problems by the arguments of podd plan.
type planFilter struct {
	pods, files []string
	running     *server.View // nil if podd is not running
}

// includes reports whether a pod is selected.
func (f planFilter) includes(p reconcile.PlannedPod) bool {
	if slices.ContainsFunc(f.pods, func(name string) bool { return hasName(p, name) }) {
		return true
	}
	if p.Pod != nil {
		return f.includesFile(p.Pod.Origin.Path)
	}
	if f.running == nil {
		return false
	}
	// If the manifest was removed from its file, use the path of the file that the running podd
	// still stores.
	view := f.running.Pod(server.Key(p.Key))
	return view != nil && f.includesFile(view.Path)
}

// unknownPods returns the arguments that name none of the planned pods.
func (f planFilter) unknownPods(planned []reconcile.PlannedPod) []string {
	return slices.DeleteFunc(slices.Clone(f.pods), func(name string) bool {
		return slices.ContainsFunc(planned, func(p reconcile.PlannedPod) bool { return hasName(p, name) })
	})
}

// hasName reports whether name is a name of a pod: its name in the manifest, the same name after the
// namespace and a slash, or its full name, which ends in the name of the node.
func hasName(p reconcile.PlannedPod, name string) bool {
	shortName := ""
	if p.Pod != nil {
		shortName = strings.TrimSuffix(p.Key.Name, "-"+p.Pod.Object.Spec.NodeName)
	}
	return name == p.Key.Name || name == shortName || name == p.Key.Namespace+"/"+shortName
}

// includesFile reports whether an argument names path, or the directory that contains path.
func (f planFilter) includesFile(path string) bool { return path != "" && isWithin(path, f.files) }

// problems returns the problems of the files that the arguments name. If the arguments name no
// file, it returns all problems.
func (f planFilter) problems(allProblems []manifest.Problem) []manifest.Problem {
	if len(f.files) == 0 {
		return allProblems
	}
	return slices.DeleteFunc(slices.Clone(allProblems), func(p manifest.Problem) bool { return !f.includesFile(p.Path) })
}

// unreadFiles returns the files that no source reads.
func unreadFiles(files, sources []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(path string) bool { return isWithin(path, sources) })
}

// isWithin reports whether sources contains path, or the directory that contains path.
func isWithin(path string, sources []string) bool {
	for _, source := range sources {
		if paths.SameFile(path, source) || paths.SameFile(filepath.Dir(path), source) {
			return true
		}
	}
	return false
}
