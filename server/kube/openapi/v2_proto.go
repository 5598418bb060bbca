package openapi

import (
	"encoding/json"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// The messages below are those of gnostic's OpenAPIv2.proto, whose field
// numbers are written here by hand: its Go package would cost every podd memory
// for what few ask for, and takes a parsed tree of the whole document to fill.

// message is an encoded protobuf message; a field with the zero value is left out.
type message []byte

func (m message) text(field protowire.Number, s string) message {
	if s == "" {
		return m
	}
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), s)
}

func (m message) texts(field protowire.Number, all []string) message {
	for _, s := range all {
		m = protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), s)
	}
	return m
}

func (m message) flag(field protowire.Number, b bool) message {
	if !b {
		return m
	}
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), 1)
}

// message is never left out: an empty message is not none.
func (m message) message(field protowire.Number, v message) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), v)
}

// any is a value as YAML, which JSON is.
func (m message) any(field protowire.Number, v any) message {
	text, err := json.Marshal(v)
	if err != nil { // a string or a slice of structs of strings
		panic("openapi: " + err.Error())
	}
	return m.message(field, message{}.text(2, string(text)+"\n"))
}

// extension is a NamedAny.
func (m message) extension(field protowire.Number, name string, v any) message {
	return m.message(field, message{}.text(1, name).any(2, v))
}

// proto is the Document.
func (s *Swagger) proto() []byte {
	var paths, definitions message
	for _, name := range slices.Sorted(maps.Keys(s.Paths)) {
		paths = paths.message(2, message{}.text(1, name).message(2, s.Paths[name].proto()))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Definitions)) {
		definitions = definitions.message(1, s.Definitions[name].named(name))
	}
	info := message{}.text(1, s.Info.Title).text(2, s.Info.Version)
	return message{}.text(1, s.Swagger).message(2, info).message(8, paths).message(9, definitions)
}

func (s *Schema) named(name string) message {
	return message{}.text(1, name).message(2, s.proto())
}

func (s *Schema) proto() message {
	m := message{}.text(1, s.Ref).text(2, s.Format).text(4, s.Description)
	if s.Default != nil {
		m = m.any(5, s.Default)
	}
	m = m.flag(16, s.UniqueItems).texts(19, s.Required)
	if s.Values != nil {
		m = m.message(21, message{}.message(1, s.Values.proto()))
	}
	if s.Type != "" {
		m = m.message(22, message{}.text(1, s.Type))
	}
	if s.Items != nil {
		m = m.message(23, message{}.message(1, s.Items.proto()))
	}
	if len(s.Properties) > 0 {
		var all message
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			all = all.message(1, s.Properties[name].named(name))
		}
		m = m.message(25, all)
	}
	return s.extensions(m)
}

func (s *Schema) extensions(m message) message {
	for _, x := range []struct {
		name  string
		value any
		set   bool
	}{
		{"x-kubernetes-group-version-kind", s.Kinds, len(s.Kinds) > 0},
		{"x-kubernetes-list-type", s.ListType, s.ListType != ""},
		{"x-kubernetes-list-map-keys", s.ListMapKeys, len(s.ListMapKeys) > 0},
		{"x-kubernetes-map-type", s.MapType, s.MapType != ""},
		{"x-kubernetes-patch-merge-key", s.PatchMergeKey, s.PatchMergeKey != ""},
		{"x-kubernetes-patch-strategy", s.PatchStrategy, s.PatchStrategy != ""},
	} {
		if x.set {
			m = m.extension(31, x.name, x.value)
		}
	}
	return m
}

func (p *Path2) proto() message {
	var m message
	for _, o := range []struct {
		field protowire.Number
		v     *Operation2
	}{{2, p.Get}, {3, p.Put}, {4, p.Post}, {5, p.Delete}, {8, p.Patch}} {
		if o.v != nil {
			m = m.message(o.field, o.v.proto())
		}
	}
	for _, v := range p.Parameters {
		m = m.message(9, v.proto())
	}
	return m
}

func (o *Operation2) proto() message {
	m := message{}.texts(1, o.Tags).text(3, o.Description).text(5, o.ID).texts(6, o.Produces).texts(7, o.Consumes)
	for _, p := range o.Parameters {
		m = m.message(8, p.proto())
	}
	var answers message
	for _, code := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[code]
		v := message{}.text(1, r.Description)
		if r.Schema != nil {
			v = v.message(2, message{}.message(1, r.Schema.proto()))
		}
		answers = answers.message(1, message{}.text(1, code).message(2, message{}.message(1, v)))
	}
	return m.message(9, answers).
		extension(13, "x-kubernetes-action", o.Action).
		extension(13, "x-kubernetes-group-version-kind", o.Kind)
}

// proto is a ParametersItem.
func (p *Parameter2) proto() message {
	switch p.In {
	case "body":
		v := message{}.text(1, p.Description).text(2, p.Name).text(3, p.In).flag(4, p.Required).message(5, p.Schema.proto())
		return message{}.message(1, message{}.message(1, v))
	case "path":
		v := message{}.flag(1, p.Required).text(2, p.In).text(3, p.Description).text(4, p.Name).text(5, p.Type).flag(19, p.UniqueItems)
		return message{}.message(1, message{}.message(2, message{}.message(4, v)))
	}
	v := message{}.flag(1, p.Required).text(2, p.In).text(3, p.Description).text(4, p.Name).text(6, p.Type).flag(20, p.UniqueItems)
	return message{}.message(1, message{}.message(2, message{}.message(3, v)))
}
