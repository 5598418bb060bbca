package openapi

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Operation is one method of a path.
type Operation struct {
	Tags        []string            `json:"tags"`
	Description string              `json:"description"`
	ID          string              `json:"operationId"`
	Parameters  []Parameter         `json:"parameters,omitempty"`
	Body        *Body               `json:"requestBody,omitempty"`
	Responses   map[string]Response `json:"responses"`
	Action      string              `json:"x-kubernetes-action"`
	Kind        Kind                `json:"x-kubernetes-group-version-kind"`

	of string // the resource's kind
}

// Body is what a request carries, by media type.
type Body struct {
	Content  map[string]Media `json:"content"`
	Required bool             `json:"required,omitempty"`
}

// Response is one answer, by media type.
type Response struct {
	Description string           `json:"description"`
	Content     map[string]Media `json:"content,omitempty"`
}

// Media is how a body is written.
type Media struct {
	Schema *Schema `json:"schema"`
}

const inJSON, inText = "application/json", "text/plain"

// operations makes those of a resource or subresource.
type operations struct {
	models     models
	of         string // the resource's kind
	in, suffix string // of operationId
	kind       schema.GroupVersionKind
	object     *Schema // nil: plain text
}

// operation is one that answers with what.
func (o operations) operation(verb, action, text string, what *Schema, codes ...string) *Operation {
	group, _, _ := strings.Cut(o.kind.Group, ".")
	if group == "" {
		group = "core"
	}
	v := &Operation{
		Tags:        []string{group + "_" + o.kind.Version},
		Description: text + " " + o.of,
		ID:          verb + capital(group) + capital(o.kind.Version) + o.in + o.of + o.suffix,
		Responses:   map[string]Response{"401": {Description: "Unauthorized"}},
		Action:      action,
		Kind:        kindOf(o.kind),
		of:          o.of,
	}
	for _, code := range codes {
		v.Responses[code] = Response{Description: answers[code], Content: content(what)}
	}
	return v
}

var answers = map[string]string{"200": "OK", "201": "Created", "202": "Accepted"}

func content(s *Schema) map[string]Media {
	if s == nil {
		return map[string]Media{inText: {&Schema{Type: "string"}}}
	}
	return map[string]Media{inJSON: {s}}
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (o operations) get(options any) *Operation {
	v := o.operation("read", "get", "read the", o.object, "200")
	v.Parameters = query(options)
	return v
}

func (o operations) list(r *Resource) *Operation {
	list := o.models.addList(r)
	v := o.operation("list", "list", "list or watch objects of kind", list, "200")
	v.Parameters = query(metav1.ListOptions{})
	if r.has("watch") {
		v.Responses["200"].Content[inJSON+";stream=watch"] = Media{list}
	}
	return v
}

func (o operations) create() *Operation {
	v := o.operation("create", "post", "create a", o.object, "200", "201", "202")
	if o.object != nil {
		v.Parameters = query(metav1.CreateOptions{})
		v.Body = &Body{content(o.object), true}
	}
	return v
}

func (o operations) update() *Operation {
	v := o.operation("replace", "put", "replace the", o.object, "200", "201")
	v.Parameters = query(metav1.UpdateOptions{})
	v.Body = &Body{content(o.object), true}
	return v
}

func (o operations) patch() *Operation {
	v := o.operation("patch", "patch", "partially update the", o.object, "200", "201")
	v.Parameters = query(metav1.PatchOptions{})
	v.Body = &Body{map[string]Media{}, true}
	patch := Media{o.models.of(reflect.TypeFor[metav1.Patch]())}
	for _, t := range []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType} {
		v.Body.Content[string(t)] = patch
	}
	return v
}

func (o operations) delete() *Operation {
	v := o.operation("delete", "delete", "delete a", o.object, "200", "202")
	v.Parameters = query(metav1.DeleteOptions{})
	v.Body = o.deletion()
	return v
}

func (o operations) deleteAll() *Operation {
	o.in = "Collection" + o.in
	status := o.models.addKind(&metav1.Status{}, schema.GroupVersionKind{Version: "v1", Kind: "Status"})
	v := o.operation("delete", "deletecollection", "delete all objects of kind", status, "200")
	v.Parameters = append(query(metav1.DeleteOptions{}), query(metav1.ListOptions{})...)
	v.Body = o.deletion()
	return v
}

func (o operations) deletion() *Body {
	of := o.kind.GroupVersion().WithKind("DeleteOptions")
	return &Body{Content: content(o.models.addKind(&metav1.DeleteOptions{}, of))}
}
