package schema

import (
	"fmt"
	"strconv"

	"podd/manifest"
	"podd/manifest/document"
)

// Index returns the positions of all fields of a document that s contains, and calls report
// for each duplicate field. The position of a field is that of its key. The position of a
// list element is that of its value. Fields below an unknown field are not included.
func (s *Schema) Index(n document.Node, report func(Fault)) manifest.Fields {
	i := indexer{fields: manifest.Fields{}, report: report}
	i.value(s, n, "")
	return i.fields
}

type indexer struct {
	fields manifest.Fields
	report func(Fault)
}

// value adds the fields below a value.
func (i *indexer) value(s *Schema, n document.Node, path string) {
	switch {
	case s == nil:
	case s.kind == object || s.kind == dictionary:
		i.members(s, n, path)
	case s.kind == list:
		for at, element := range n.Elements() {
			p := elementPath(path, at)
			i.fields[p] = element.Position()
			i.value(s.element, element, p)
		}
	}
}

// members adds the members of an object.
func (i *indexer) members(s *Schema, n document.Node, path string) {
	lines := map[string]uint32{} // the last line of each key
	n.EachMember(func(m document.Member) {
		field := s.Path(path, m.Key)
		if line, ok := lines[m.Key]; ok && !m.IsMerged {
			i.report(Fault{Kind: DuplicateField, Path: field, Position: m.Position,
				Message: fmt.Sprintf("duplicate field, also on line %d, and the last value is used; remove one", line)})
		}
		if !m.IsMerged {
			lines[m.Key] = m.Position.Line
		}
		i.fields[field] = m.Position
		i.value(s.Member(m.Key), m.Value, field)
	})
}

// elementPath appends an index to the path of a list, as in "a[0]".
func elementPath(path string, index int) string { return path + "[" + strconv.Itoa(index) + "]" }
