package manifest

import "strings"

// A Position is a line and column in a text, both counted from 1. The zero value means unknown.
type Position struct{ Line, Column uint32 }

// FieldPositions contains the positions of fields by path ("spec.containers[0].image"). It must not
// be modified once it is in an Origin.
type FieldPositions map[string]Position

// Nearest returns the position of a field or, if the field is not in f, of its nearest parent in
// f. ok is false if f contains neither the field nor a parent.
func (f FieldPositions) Nearest(path string) (at Position, ok bool) {
	for ; path != ""; path = ParentField(path) {
		if at, ok := f[path]; ok {
			return at, true
		}
	}
	return Position{}, false
}

// Position returns the position of the field with this path, such as
// "spec.containers[0].image". If the field is not in the text, Position returns the position of
// its nearest parent in the text. If no parent is in the text, Position returns the line of the
// document.
func (o Origin) Position(path string) Position {
	if at, ok := o.Fields.Nearest(path); ok {
		return at
	}
	return Position{Line: uint32(max(o.Line, 0))}
}

// ParentField returns path without its last step. A step is a text like ".name", "[0]" or
// "[some.key]".
func ParentField(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:max(strings.LastIndexByte(path, '['), 0)]
	}
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}
