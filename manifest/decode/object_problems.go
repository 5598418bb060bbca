package decode

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/manifest/order"
	"podd/manifest/schema"
	"podd/manifest/wording"
)

// maxObjectProblems is the maximum number of errors, and also the maximum number of warnings, that
// are listed for one object. maxProblems is the maximum number of Problems of one manifest.
const (
	maxObjectProblems = 100
	maxProblems       = 1000
)

// objectProblems collects the Problems of one object while it is decoded.
type objectProblems struct {
	path          string
	startPosition manifest.Position
	isStrict      bool
	// fields contains the positions of the fields. It becomes Origin.Fields.
	fields manifest.FieldPositions
	// wrongTypePaths maps the path of every value of a wrong type to true, and the paths of its
	// parents to false. addInvalid omits redundant validation errors about these paths.
	wrongTypePaths map[string]bool

	isRefused       bool
	problems        []manifest.Problem
	countBySeverity map[manifest.Severity]int
	unlistedCount   int
}

// positionOf returns the position of a field, or of its nearest parent that is in the text.
func (n *objectProblems) positionOf(path string) manifest.Position {
	if at, ok := n.fields.Nearest(path); ok {
		return at
	}
	return n.startPosition
}

// addProblem records a Problem at a position.
func (n *objectProblems) addProblem(severity manifest.Severity, at manifest.Position, path, message string) {
	if severity == manifest.Error {
		n.isRefused = true
	}
	if n.countBySeverity == nil {
		n.countBySeverity = map[manifest.Severity]int{}
	}
	if n.countBySeverity[severity]++; n.countBySeverity[severity] > maxObjectProblems {
		n.unlistedCount++
		return
	}
	n.problems = append(n.problems, manifest.Problem{Severity: severity, Path: n.path, Position: at, FieldPath: wording.MakePrintable(path, 300), Message: wording.MakePrintable(message, 1000)})
}

// addProblems records Problems at the positions of their fields.
func (n *objectProblems) addProblems(list []manifest.Problem) {
	for _, p := range list {
		n.addProblem(p.Severity, n.positionOf(p.FieldPath), p.FieldPath, p.Message)
	}
}

// addError records an error about a field.
func (n *objectProblems) addError(path, format string, args ...any) {
	n.addProblem(manifest.Error, n.positionOf(path), path, fmt.Sprintf(format, args...))
}

// addWarning records a warning about a field.
func (n *objectProblems) addWarning(path, format string, args ...any) {
	n.addProblem(manifest.Warning, n.positionOf(path), path, fmt.Sprintf(format, args...))
}

// addFault records a difference between the object and its schema. A wrong type is an error.
// Other faults are errors only if decoding is strict.
func (n *objectProblems) addFault(f schema.Fault) {
	if f.Kind == schema.WrongType {
		n.addTypeError(f.Path, f.Message)
		return
	}
	severity, at := manifest.Warning, f.Position
	if n.isStrict {
		severity = manifest.Error
	}
	if at == (manifest.Position{}) {
		at = n.positionOf(f.Path)
	}
	n.addProblem(severity, at, f.Path, f.Message)
}

// addTypeError records a value of the wrong type.
func (n *objectProblems) addTypeError(path, message string) {
	n.addError(path, "%s", message)
	if n.wrongTypePaths == nil {
		n.wrongTypePaths = map[string]bool{}
	}
	n.wrongTypePaths[path] = true
	for path = manifest.ParentField(path); path != ""; path = manifest.ParentField(path) {
		if _, ok := n.wrongTypePaths[path]; !ok {
			n.wrongTypePaths[path] = false
		}
	}
}

// unmarshal decodes tree into an object. tree must be a result of schema.Check, which returns only
// fields with known names and values of the right types.
//
// Because the case of each name is right, the result of encoding/json is the same as that of
// sigs.k8s.io/json, which the API server uses. encoding/json needs less memory, because podd also
// encodes pods with it: each of these packages stores descriptions of all types of a pod, 0.3 MB.
func (n *objectProblems) unmarshal(tree any, into any) {
	text, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		n.addError("", "decoding: %s", wording.Clip(err.Error(), 300))
	}
}

// addInvalid records validation errors, except those that are redundant (isRedundant).
func (n *objectProblems) addInvalid(errs field.ErrorList) {
	for _, e := range errs {
		if !n.isRedundant(e) {
			n.addError(e.Field, "%s", errorMessage(e))
		}
	}
}

// isRedundant reports whether a validation error is redundant. It is redundant if the field, or a
// field above it, has a wrong type. An error about a missing or empty field is also redundant if a
// field below it has a wrong type. Decoding has removed this field before the validation.
func (n *objectProblems) isRedundant(e *field.Error) bool {
	if _, containsWrongType := n.wrongTypePaths[e.Field]; containsWrongType && (e.BadValue == "" || e.Type == field.ErrorTypeRequired) {
		return true
	}
	for path := e.Field; path != ""; path = manifest.ParentField(path) {
		if n.wrongTypePaths[path] {
			return true
		}
	}
	return false
}

// finish completes the Problems: it sets the pod of each Problem to key, sets CausesRefusal for
// errors, and sorts the Problems by position. key is zero for objects other than pods.
func (n *objectProblems) finish(key types.NamespacedName) {
	if n.unlistedCount > 0 {
		severity := manifest.Warning
		if n.isRefused {
			severity = manifest.Error
		}
		n.problems = append(n.problems, manifest.Problem{Severity: severity, Path: n.path, Position: n.startPosition,
			Message: fmt.Sprintf("%d more problems are not listed; fix these first", n.unlistedCount)})
	}
	for i := range n.problems {
		n.problems[i].Pod = key
		n.problems[i].CausesRefusal = n.problems[i].Severity == manifest.Error
	}
	order.Stable(n.problems, func(a, b manifest.Problem) int {
		return cmp.Or(cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
	})
}
