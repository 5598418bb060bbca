package openapi

import (
	"maps"
	"slices"
	"strings"
)

// Swagger is the whole API in OpenAPI's version 2.
type Swagger struct {
	Swagger     string             `json:"swagger"`
	Info        Info               `json:"info"`
	Paths       map[string]*Path2  `json:"paths"`
	Definitions map[string]*Schema `json:"definitions"`
}

// Path2 is a Path of version 2.
type Path2 struct {
	Get        *Operation2  `json:"get,omitempty"`
	Put        *Operation2  `json:"put,omitempty"`
	Post       *Operation2  `json:"post,omitempty"`
	Delete     *Operation2  `json:"delete,omitempty"`
	Patch      *Operation2  `json:"patch,omitempty"`
	Parameters []Parameter2 `json:"parameters,omitempty"`
}

// Operation2 is an Operation of version 2.
type Operation2 struct {
	Tags        []string             `json:"tags"`
	Description string               `json:"description"`
	ID          string               `json:"operationId"`
	Consumes    []string             `json:"consumes,omitempty"`
	Produces    []string             `json:"produces"`
	Parameters  []Parameter2         `json:"parameters,omitempty"`
	Responses   map[string]Response2 `json:"responses"`
	Action      string               `json:"x-kubernetes-action"`
	Kind        Kind                 `json:"x-kubernetes-group-version-kind"`
}

// Parameter2 is a Parameter of version 2, where the body is one too.
type Parameter2 struct {
	Name        string  `json:"name"`
	In          string  `json:"in"` // "query", "path", "body"
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Type        string  `json:"type,omitempty"`
	UniqueItems bool    `json:"uniqueItems,omitempty"`
	Schema      *Schema `json:"schema,omitempty"` // of the body
}

// Response2 is a Response of version 2.
type Response2 struct {
	Description string  `json:"description"`
	Schema      *Schema `json:"schema,omitempty"`
}

// swagger is what documents say, in version 2.
func swagger(documents map[string]*Document) *Swagger {
	s := &Swagger{Swagger: "2.0", Paths: map[string]*Path2{}, Definitions: map[string]*Schema{}}
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		d := documents[name]
		s.Info = d.Info
		for path, p := range d.Paths {
			s.Paths[path] = path2(p)
		}
		for name, model := range d.Components.Schemas {
			s.define(name, schema2(model))
		}
	}
	return s
}

// define adds a model, or to one that another group version has too its kinds.
func (s *Swagger) define(name string, model *Schema) {
	if known := s.Definitions[name]; known != nil {
		for _, k := range model.Kinds {
			if !slices.Contains(known.Kinds, k) {
				known.Kinds = append(known.Kinds, k)
			}
		}
		return
	}
	s.Definitions[name] = model
}

// schema2 copies a schema: a reference has its text beside it, and what may be
// of several types is called a string.
func schema2(s *Schema) *Schema {
	if s == nil {
		return nil
	}
	c := *s
	if len(s.AllOf) == 1 {
		c.Ref, c.AllOf = s.AllOf[0].Ref, nil
	}
	if name, ok := strings.CutPrefix(c.Ref, v3Schemas); ok {
		c.Ref = v2Schemas + name
	}
	if len(s.OneOf) > 0 {
		c.Type, c.OneOf = "string", nil
	}
	c.Kinds = slices.Clone(s.Kinds)
	c.Items, c.Values = schema2(s.Items), schema2(s.Values)
	c.Properties = make(map[string]*Schema, len(s.Properties))
	for name, p := range s.Properties {
		c.Properties[name] = schema2(p)
	}
	return &c
}

func path2(p *Path) *Path2 {
	return &Path2{
		Get: operation2(p.Get), Put: operation2(p.Put), Post: operation2(p.Post),
		Delete: operation2(p.Delete), Patch: operation2(p.Patch),
		Parameters: parameters2(p.Parameters),
	}
}

func operation2(o *Operation) *Operation2 {
	if o == nil {
		return nil
	}
	v := &Operation2{
		Tags: o.Tags, Description: o.Description, ID: o.ID,
		Parameters: parameters2(o.Parameters), Responses: map[string]Response2{},
		Action: o.Action, Kind: o.Kind,
	}
	if o.Body != nil {
		v.Consumes = slices.Sorted(maps.Keys(o.Body.Content))
		v.Parameters = append(v.Parameters, Parameter2{
			Name: "body", In: "body", Required: o.Body.Required, Schema: anyOf(o.Body.Content),
		})
	}
	for code, r := range o.Responses {
		v.Responses[code] = Response2{r.Description, anyOf(r.Content)}
		for media := range r.Content {
			if !slices.Contains(v.Produces, media) {
				v.Produces = append(v.Produces, media)
			}
		}
	}
	slices.Sort(v.Produces)
	return v
}

// anyOf is the schema of a body, which all of its media types share.
func anyOf(content map[string]Media) *Schema {
	for _, m := range content {
		return schema2(m.Schema)
	}
	return nil
}

func parameters2(all []Parameter) []Parameter2 {
	var s []Parameter2
	for _, p := range all {
		s = append(s, Parameter2{
			Name: p.Name, In: p.In, Description: p.Description, Required: p.Required,
			Type: p.Schema.Type, UniqueItems: p.Schema.UniqueItems,
		})
	}
	return s
}
