package config

import (
	"strings"

	"podd/manifest"
)

// layer is one place that settings come from: a file or the command line.
type layer struct {
	path string         // of the file; "" is the command line
	tree map[string]any // JSON values, numbers as json.Number
	// at has the position of every key and list element, by field path.
	at map[string]manifest.Position
	// flag has the flag that set a field path; nil for files.
	flag map[string]string
}

// origin is where a value was written; the zero value is nowhere.
type origin struct {
	path string
	pos  manifest.Position
	flag string
}

// origin of the value at a field path in l: its own place, or that of the
// nearest value around it.
func (l *layer) origin(at string) origin {
	o := origin{path: l.path}
	for ; at != ""; at = parent(at) {
		if o.pos == (manifest.Position{}) {
			o.pos = l.at[at]
		}
		if o.flag == "" {
			o.flag = l.flag[at]
		}
	}
	return o
}

// set puts a value at a dotted path, as the flag says.
func (l *layer) set(path, flag string, value any) {
	l.flag[path] = flag
	keys := strings.Split(path, ".")
	tree := l.tree
	for _, key := range keys[:len(keys)-1] {
		next, ok := tree[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			tree[key] = next
		}
		tree = next
	}
	tree[keys[len(keys)-1]] = value
}

// replaces tells whether an object at path is a flag's, which takes the place of a
// file's. The kubelet merges those of feature gates.
func (l *layer) replaces(path string) bool { return l.flag[path] != "" && path != "featureGates" }

// problem is about the field at o; a flag is named instead of its field.
func (o origin) problem(sev manifest.Severity, field, message string) manifest.Problem {
	if o.flag != "" {
		field = o.flag
	}
	return manifest.Problem{Severity: sev, Path: o.path, Position: o.pos, Field: field, Message: message}
}

// String is "file:line", the flag, or "" where neither is known.
func (o origin) String() string {
	if o.flag != "" {
		return o.flag
	}
	return place(o.path, o.pos)
}
