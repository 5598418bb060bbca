package config

import (
	"strings"

	"podd/manifest"
)

// A layer is one origin of settings: a file or the command line.
type layer struct {
	path string         // of the file; "" for the command line
	tree map[string]any // JSON values, as in document.Value
	// fields contains the positions of fields; it is nil for the command line.
	fields manifest.Fields
	// flag maps field paths to the flags that set them; nil for files.
	flag map[string]string
}

// origin is the position of a value; the zero value is unknown.
type origin struct {
	path string
	pos  manifest.Position
	flag string
}

// origin returns the position of the value at a field path, or that of the nearest
// enclosing value.
func (l *layer) origin(at string) origin {
	o := origin{path: l.path}
	o.pos, _ = l.fields.Nearest(at)
	for ; at != "" && o.flag == ""; at = manifest.ParentField(at) {
		o.flag = l.flag[at]
	}
	return o
}

// set sets the value of a flag at a dotted path.
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

// replaces reports whether an object at path replaces that of lower layers, instead of being
// merged with it. Objects of flags do, except feature gates, as in the kubelet.
func (l *layer) replaces(path string) bool { return l.flag[path] != "" && path != "featureGates" }

// problem returns a problem at o. It names the flag, if there is one, instead of the
// field.
func (o origin) problem(sev manifest.Severity, field, message string) manifest.Problem {
	if o.flag != "" {
		field = o.flag
	}
	return manifest.Problem{Severity: sev, Path: o.path, Position: o.pos, Field: field, Message: message}
}

// keyProblem returns a problem at o of a key in the map of a field, for example
// evictionHard[memory.available]. A flag has no field path, so the message names the key.
func (o origin) keyProblem(severity manifest.Severity, field, key, message string) manifest.Problem {
	if o.flag != "" {
		message = key + ": " + message
	}
	return o.problem(severity, joinKey(field, key), message)
}

// String returns "file:line", the flag, or "".
func (o origin) String() string {
	if o.flag != "" {
		return o.flag
	}
	return formatPosition(o.path, o.pos)
}
