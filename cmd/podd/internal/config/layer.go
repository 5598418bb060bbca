package config

import (
	"strings"
	"time"

	"podd/manifest"
)

// A layer contains the settings of one configuration file or of the command line.
type layer struct {
	path string         // path of the file; "" for the command line
	tree map[string]any // JSON values, as in document.Value
	// positions contains the positions of fields in the file. It is nil for the command line.
	positions manifest.FieldPositions
	// flags maps field paths to the names of the flags that set them. It is nil for a file.
	flags map[string]string
	// derived is the set of the field paths whose values the file does not contain, because they
	// follow from other fields.
	derived map[string]bool
}

// An origin is the position of a value: a position in a file, or the name of a flag with its
// leading dashes. The zero value means that the position is unknown.
type origin struct {
	path string
	pos  manifest.Position
	flag string
}

// origin returns the position of the value at a field path, or the position of the nearest
// enclosing value.
func (l *layer) origin(at string) origin {
	o := origin{path: l.path}
	o.pos, _ = l.positions.Nearest(at)
	for ; at != "" && o.flag == ""; at = manifest.ParentField(at) {
		o.flag = l.flags[at]
	}
	return o
}

// set sets the value at a dotted field path and records the flag that sets it.
func (l *layer) set(path, flag string, value any) {
	l.flags[path] = flag
	keys := strings.Split(path, ".")
	tree := l.tree
	for _, key := range keys[:len(keys)-1] {
		object, ok := tree[key].(map[string]any)
		if !ok {
			object = map[string]any{}
			tree[key] = object
		}
		tree = object
	}
	tree[keys[len(keys)-1]] = value
}

// replaces reports whether the object at path replaces the object of lower layers. Otherwise the
// two objects are merged. As in the kubelet, an object that a flag sets replaces the objects of
// files, but feature gates of flags and files are merged.
func (l *layer) replaces(path string) bool { return l.flags[path] != "" && path != "featureGates" }

// deriveReportFrequency sets nodeStatusReportFrequency to nodeStatusUpdateFrequency if the layer sets only
// the latter, or the former to 0. In the kubelet, this is a default of the file of --config (pkg/kubelet/apis/config/v1beta1),
// so that drop-ins and flags with another nodeStatusUpdateFrequency do not change the result.
func (l *layer) deriveReportFrequency() {
	const updateField, reportField = "nodeStatusUpdateFrequency", "nodeStatusReportFrequency"
	if parseJSONDuration(l.tree[reportField]) == 0 && parseJSONDuration(l.tree[updateField]) > 0 {
		if l.tree[reportField] == nil {
			l.derived = newSet(reportField)
		}
		l.tree[reportField] = l.tree[updateField]
	}
}

// parseJSONDuration returns the duration in a valid JSON value. It returns 0 if value is nil.
func parseJSONDuration(value any) time.Duration {
	text, _ := value.(string)
	d, _ := time.ParseDuration(text)
	return d
}

// problem returns a problem with the position o. If a flag sets the value, the problem names the
// flag instead of the field.
func (o origin) problem(sev manifest.Severity, field, message string) manifest.Problem {
	if o.flag != "" {
		field = o.flag
	}
	return manifest.Problem{Severity: sev, Path: o.path, Position: o.pos, FieldPath: field, Message: message}
}

// keyProblem returns a problem with the position o that concerns a key in a map, for example
// evictionHard[memory.available]. If a flag sets the value, the message names the key, because the
// name of the flag does not contain it.
func (o origin) keyProblem(severity manifest.Severity, field, key, message string) manifest.Problem {
	if o.flag != "" {
		message = key + ": " + message
	}
	return o.problem(severity, joinKey(field, key), message)
}

// String returns the flag or "file:line". It returns "" for the zero value.
func (o origin) String() string {
	if o.flag != "" {
		return o.flag
	}
	return formatPosition(o.path, o.pos)
}
