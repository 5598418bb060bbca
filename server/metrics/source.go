package metrics

import (
	"strings"

	"podd/server"
)

// mostSources is how many files and URLs have series of their own: the rest, of which
// only a mistake makes so many, is told of as one.
const mostSources = 1000

// sources are those that have their own.
type sources map[string]bool

// sourcesOf are the first in the order of paths, so that they stay the same ones.
func sourcesOf(v *server.View) sources {
	s := sources{}
	take := func(path string) {
		if path != "" && len(s) < mostSources {
			s[text(path)] = true
		}
	}
	for i := range v.Files {
		take(v.Files[i].Path)
	}
	for i := range v.Problems {
		take(v.Problems[i].Path)
	}
	for _, p := range v.Pods {
		take(p.Path)
	}
	return s
}

// label names what a series is of: a file, the node for none, or those that have no
// series of their own.
func (s sources) label(path string) string {
	if path == "" {
		return "node"
	}
	if name := text(path); s[name] {
		return name
	}
	return "other"
}

// text is a path as text, which the name of a file need not be.
func text(path string) string { return strings.ToValidUTF8(path, "\uFFFD") }
