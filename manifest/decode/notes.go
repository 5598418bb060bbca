package decode

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/manifest/order"
	"podd/manifest/schema"
	"podd/manifest/wording"
)

// maxNotes is the maximum number of errors, and of warnings, that are listed for one object.
// maxProblems is the maximum number of Problems of one manifest.
const (
	maxNotes    = 100
	maxProblems = 1000
)

// notes collects the Problems of one object while it is decoded.
type notes struct {
	path   string
	start  manifest.Position
	strict bool
	// fields contains the positions of the fields. It becomes Origin.Fields.
	fields manifest.Fields
	// mistyped contains the paths of values of a wrong type with the value true, and the paths
	// of their parents with the value false. Validation errors about these paths are redundant.
	mistyped map[string]bool

	refused  bool
	list     []manifest.Problem
	counts   map[manifest.Severity]int
	unlisted int
}

// at returns the position of a field, or of its nearest parent that is in the text.
func (n *notes) at(path string) manifest.Position {
	if at, ok := n.fields.Nearest(path); ok {
		return at
	}
	return n.start
}

// add records a Problem at a position.
func (n *notes) add(severity manifest.Severity, at manifest.Position, path, message string) {
	if severity == manifest.Error {
		n.refused = true
	}
	if n.counts == nil {
		n.counts = map[manifest.Severity]int{}
	}
	if n.counts[severity]++; n.counts[severity] > maxNotes {
		n.unlisted++
		return
	}
	n.list = append(n.list, manifest.Problem{Severity: severity, Path: n.path, Position: at, Field: wording.Printable(path, 300), Message: wording.Printable(message, 1000)})
}

// addAll records Problems at the positions of their fields.
func (n *notes) addAll(list []manifest.Problem) {
	for _, p := range list {
		n.add(p.Severity, n.at(p.Field), p.Field, p.Message)
	}
}

// fail records an error about a field.
func (n *notes) fail(path, format string, args ...any) {
	n.add(manifest.Error, n.at(path), path, fmt.Sprintf(format, args...))
}

// warn records a warning about a field.
func (n *notes) warn(path, format string, args ...any) {
	n.add(manifest.Warning, n.at(path), path, fmt.Sprintf(format, args...))
}

// addFault records a difference between the object and its schema. A wrong type is an error.
// Other faults are errors only if decoding is strict.
func (n *notes) addFault(f schema.Fault) {
	if f.Kind == schema.WrongType {
		n.typeError(f.Path, f.Message)
		return
	}
	severity, at := manifest.Warning, f.Position
	if n.strict {
		severity = manifest.Error
	}
	if at == (manifest.Position{}) {
		at = n.at(f.Path)
	}
	n.add(severity, at, f.Path, f.Message)
}

// typeError records a value of the wrong type.
func (n *notes) typeError(path, message string) {
	n.fail(path, "%s", message)
	if n.mistyped == nil {
		n.mistyped = map[string]bool{}
	}
	n.mistyped[path] = true
	for path = manifest.ParentField(path); path != ""; path = manifest.ParentField(path) {
		if _, ok := n.mistyped[path]; !ok {
			n.mistyped[path] = false
		}
	}
}

// unmarshal decodes tree into an object. The types of the values in tree must have been checked.
func (n *notes) unmarshal(tree any, into any) {
	text, err := utiljson.Marshal(tree)
	if err == nil {
		err = utiljson.Unmarshal(text, into)
	}
	if err != nil {
		n.fail("", "decoding: %s", wording.Clip(err.Error(), 300))
	}
}

// addInvalid records validation errors, except those that are redundant (isReported).
func (n *notes) addInvalid(errs field.ErrorList) {
	for _, e := range errs {
		if !n.isReported(e) {
			n.fail(e.Field, "%s", errorMessage(e))
		}
	}
}

// isReported reports whether a validation error is redundant. It is redundant if the field, or a
// field above it, has a wrong type. An error about a missing or empty field is also redundant if a
// field below it has a wrong type. The reason is that the value with the wrong type was removed.
func (n *notes) isReported(e *field.Error) bool {
	if _, above := n.mistyped[e.Field]; above && (e.BadValue == "" || e.Type == field.ErrorTypeRequired) {
		return true
	}
	for path := e.Field; path != ""; path = manifest.ParentField(path) {
		if n.mistyped[path] {
			return true
		}
	}
	return false
}

// finish completes the Problems: it sets the pod of each Problem to key, marks errors as
// Refused, and sorts the Problems by position. key is zero for objects other than pods.
func (n *notes) finish(key types.NamespacedName) {
	if n.unlisted > 0 {
		severity := manifest.Warning
		if n.refused {
			severity = manifest.Error
		}
		n.list = append(n.list, manifest.Problem{Severity: severity, Path: n.path, Position: n.start,
			Message: fmt.Sprintf("%d more problems are not listed; fix these first", n.unlisted)})
	}
	for i := range n.list {
		n.list[i].Pod = key
		n.list[i].Refused = n.list[i].Severity == manifest.Error
	}
	order.Stable(n.list, func(a, b manifest.Problem) int {
		return cmp.Or(cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
	})
}
