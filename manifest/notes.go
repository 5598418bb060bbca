package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxNotes bounds the errors, and the warnings, listed for one document, and
// maxProblems all of them listed for one text.
const (
	maxNotes    = 100
	maxProblems = 1000
)

// notes gathers the Problems of one object while it is decoded.
type notes struct {
	path   string
	start  Position
	strict bool
	// fields becomes Origin.Fields; it is only written while indexing.
	fields map[string]Position
	// mistyped has the paths whose value had the wrong type, and as false the
	// paths above them: what validation says of the hole they leave is no news.
	mistyped map[string]bool

	refused  bool
	list     []Problem
	counts   map[Severity]int
	unlisted int
}

// at is where a field stands, or else its nearest parent that does.
func (n *notes) at(path string) Position {
	return nearest(n.fields, path, n.start)
}

// Position is where a field stands ("spec.containers[0].image"), or else its
// nearest parent that was written; the document's line when there is none.
func (o Origin) Position(path string) Position {
	return nearest(o.Fields, path, Position{Line: uint32(max(o.Line, 0))})
}

func nearest(fields map[string]Position, path string, start Position) Position {
	for path != "" {
		if at, ok := fields[path]; ok {
			return at
		}
		path = parent(path)
	}
	return start
}

// parent cuts the last step off a field path: ".name", "[0]" or "[some.key]".
func parent(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:max(strings.LastIndexByte(path, '['), 0)]
	}
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// add notes a Problem at a place.
func (n *notes) add(severity Severity, at Position, path, message string) {
	if severity == Error {
		n.refused = true
	}
	if n.counts == nil {
		n.counts = map[Severity]int{}
	}
	if n.counts[severity]++; n.counts[severity] > maxNotes {
		n.unlisted++
		return
	}
	n.list = append(n.list, Problem{Severity: severity, Path: n.path, Position: at, Field: printable(path, 300), Message: printable(message, 1000)})
}

// fail notes an error about a field.
func (n *notes) fail(path, format string, args ...any) {
	n.add(Error, n.at(path), path, fmt.Sprintf(format, args...))
}

// warn notes a warning about a field.
func (n *notes) warn(path, format string, args ...any) {
	n.add(Warning, n.at(path), path, fmt.Sprintf(format, args...))
}

// sloppy notes what is only an error when decoding is strict.
func (n *notes) sloppy(at Position, path, format string, args ...any) {
	severity := Warning
	if n.strict {
		severity = Error
	}
	n.add(severity, at, path, fmt.Sprintf(format, args...))
}

// typeError notes a value of the wrong type.
func (n *notes) typeError(path, message string) {
	n.fail(path, "%s", message)
	put(&n.mistyped, path, true)
	for path = parent(path); path != ""; path = parent(path) {
		if _, ok := n.mistyped[path]; !ok {
			n.mistyped[path] = false
		}
	}
}

// unmarshal fills a typed object from a tree whose types have been checked.
func (n *notes) unmarshal(tree any, into any) {
	text, err := utiljson.Marshal(tree)
	if err == nil {
		err = utiljson.Unmarshal(text, into)
	}
	if err != nil {
		n.fail("", "decoding: %s", clip(err.Error(), 300))
	}
}

// invalid notes the errors of validation, but not those about a field that was
// already found mistyped.
func (n *notes) invalid(errs field.ErrorList) {
	for _, e := range errs {
		if !n.known(e) {
			n.fail(e.Field, "%s", sentence(e))
		}
	}
}

// known says that an error is about a mistyped field or something in it, or
// about the lack of one in the field above.
func (n *notes) known(e *field.Error) bool {
	if _, above := n.mistyped[e.Field]; above && (e.BadValue == "" || e.Type == field.ErrorTypeRequired) {
		return true
	}
	for path := e.Field; path != ""; path = parent(path) {
		if n.mistyped[path] {
			return true
		}
	}
	return false
}

// finish puts the pod's or object's name on every Problem, marks the reasons of
// a refusal and sorts by place.
func (n *notes) finish(key types.NamespacedName) {
	if n.unlisted > 0 {
		severity := Warning
		if n.refused {
			severity = Error
		}
		n.list = append(n.list, Problem{Severity: severity, Path: n.path, Position: n.start,
			Message: fmt.Sprintf("%d more problems are not listed; mend these first", n.unlisted)})
	}
	for i := range n.list {
		n.list[i].Pod = key
		n.list[i].Refused = n.list[i].Severity == Error
	}
	slices.SortStableFunc(n.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
	})
}
