package metrics

import (
	"strings"

	"podd/server"
)

// maxSources limits the number of files and URLs that have individual series, because a user may
// create very many files by mistake. The remaining files and URLs share a series.
const maxSources = 1000

// sources are the files and URLs that have individual series.
type sources map[string]bool

// newSources returns the first maxSources paths of files, problems and pods in a View. View.Files
// comes first and is sorted, so that the selection is stable.
func newSources(v *server.View) sources {
	s := sources{}
	add := func(path string) {
		if path != "" && len(s) < maxSources {
			s[validUTF8(path)] = true
		}
	}
	for i := range v.Files {
		add(v.Files[i].Path)
	}
	for i := range v.Problems {
		add(v.Problems[i].Path)
	}
	for _, p := range v.Pods {
		add(p.Path)
	}
	return s
}

// label returns the value of the metric label "source". It is the path, or "node" for an empty
// path, or "other" if the path has no individual series.
func (s sources) label(path string) string {
	if path == "" {
		return "node"
	}
	if name := validUTF8(path); s[name] {
		return name
	}
	return "other"
}

// validUTF8 replaces invalid bytes in path, because label values must be valid
// UTF-8 and file names need not be.
func validUTF8(path string) string { return strings.ToValidUTF8(path, "\uFFFD") }
