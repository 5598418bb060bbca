package schema

import (
	"fmt"
	"strconv"

	"podd/manifest"
	"podd/manifest/document"
)

// Index returns the positions of all fields of a document by path, and calls report for each
// duplicate field. The position of a field is the position of its key. The position of a list
// element is the position of its value. Index omits the fields below a field that s does not
// contain.
func (s *Schema) Index(n document.Node, report func(Fault)) manifest.FieldPositions {
	i := indexer{fields: manifest.FieldPositions{}, report: report}
	i.addValue(s, n, "")
	return i.fields
}

type indexer struct {
	fields manifest.FieldPositions
	report func(Fault)
}

// addValue adds the positions of the fields below a value.
func (i *indexer) addValue(s *Schema, n document.Node, path string) {
	switch {
	case s == nil:
	case s.kind == object || s.kind == dictionary:
		i.addMembers(s, n, path)
	case s.kind == list:
		for index, element := range n.Elements() {
			p := elementPath(path, index)
			i.fields[p] = element.Position()
			i.addValue(s.element, element, p)
		}
	}
}

// addMembers adds the positions of the members of an object, and of the fields below them.
func (i *indexer) addMembers(s *Schema, n document.Node, path string) {
	lines := map[string]uint32{} // the line of the last occurrence of each key
	n.EachMember(func(m document.Member) {
		fieldPath := s.AppendPath(path, m.Key)
		if line, ok := lines[m.Key]; ok && !m.IsMerged {
			i.report(Fault{Kind: DuplicateField, Path: fieldPath, Position: m.Position,
				Message: fmt.Sprintf("duplicate field, also on line %d, and the last value is used; remove one", line)})
		}
		if !m.IsMerged {
			lines[m.Key] = m.Position.Line
		}
		i.fields[fieldPath] = m.Position
		i.addValue(s.Member(m.Key), m.Value, fieldPath)
	})
}

// elementPath appends an index to the path of a list, as in "a[0]".
func elementPath(path string, index int) string { return path + "[" + strconv.Itoa(index) + "]" }
