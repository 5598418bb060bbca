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

	resourceKind string // kind of the resource
}

// Body is the body of a request, by media type.
type Body struct {
	Content  map[string]Media `json:"content"`
	Required bool             `json:"required,omitempty"`
}

// Response is one response, by media type.
type Response struct {
	Description string           `json:"description"`
	Content     map[string]Media `json:"content,omitempty"`
}

// Media is the schema of a body in one media type.
type Media struct {
	Schema *Schema `json:"schema"`
}

const mediaJSON, mediaText = "application/json", "text/plain"

// operations builds the operations of a resource or subresource.
type operations struct {
	models        models
	resourceKind  string // kind of the resource
	scope, suffix string // parts of the operation's ID
	kind          schema.GroupVersionKind
	object        *Schema // model of the kind; nil if the body is plain text
}

// newOperation returns an operation. The schema of its response is the parameter result.
func (o operations) newOperation(verb, action, text string, result *Schema, codes ...string) *Operation {
	group, _, _ := strings.Cut(o.kind.Group, ".")
	if group == "" {
		group = "core"
	}
	v := &Operation{
		Tags:         []string{group + "_" + o.kind.Version},
		Description:  text + " " + o.resourceKind,
		ID:           verb + capitalize(group) + capitalize(o.kind.Version) + o.scope + o.resourceKind + o.suffix,
		Responses:    map[string]Response{"401": {Description: "Unauthorized"}},
		Action:       action,
		Kind:         newKind(o.kind),
		resourceKind: o.resourceKind,
	}
	for _, code := range codes {
		v.Responses[code] = Response{Description: statusTexts[code], Content: jsonContent(result)}
	}
	return v
}

var statusTexts = map[string]string{"200": "OK", "201": "Created", "202": "Accepted"}

// jsonContent returns a JSON body with a schema.
func jsonContent(s *Schema) map[string]Media {
	if s == nil {
		return map[string]Media{mediaText: {&Schema{Type: "string"}}}
	}
	return map[string]Media{mediaJSON: {s}}
}

// capitalize returns s with the first letter in upper case.
func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (o operations) getOperation(options any) *Operation {
	v := o.newOperation("read", "get", "read the", o.object, "200")
	v.Parameters = queryParameters(options)
	return v
}

func (o operations) listOperation(r *Resource) *Operation {
	list := o.models.addList(r)
	v := o.newOperation("list", "list", "list or watch objects of kind", list, "200")
	v.Parameters = queryParameters(metav1.ListOptions{})
	if r.hasVerb("watch") {
		v.Responses["200"].Content[mediaJSON+";stream=watch"] = Media{list}
	}
	return v
}

func (o operations) createOperation() *Operation {
	v := o.newOperation("create", "post", "create a", o.object, "200", "201", "202")
	if o.object != nil {
		v.Parameters = queryParameters(metav1.CreateOptions{})
		v.Body = &Body{jsonContent(o.object), true}
	}
	return v
}

func (o operations) updateOperation() *Operation {
	v := o.newOperation("replace", "put", "replace the", o.object, "200", "201")
	v.Parameters = queryParameters(metav1.UpdateOptions{})
	v.Body = &Body{jsonContent(o.object), true}
	return v
}

func (o operations) patchOperation() *Operation {
	v := o.newOperation("patch", "patch", "partially update the", o.object, "200", "201")
	v.Parameters = queryParameters(metav1.PatchOptions{})
	v.Body = &Body{map[string]Media{}, true}
	patch := Media{o.models.schemaFor(reflect.TypeFor[metav1.Patch]())}
	for _, t := range []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType} {
		v.Body.Content[string(t)] = patch
	}
	return v
}

func (o operations) deleteOperation() *Operation {
	v := o.newOperation("delete", "delete", "delete a", o.object, "200", "202")
	v.Parameters = queryParameters(metav1.DeleteOptions{})
	v.Body = o.deleteBody()
	return v
}

func (o operations) deleteAllOperation() *Operation {
	o.scope = "Collection" + o.scope
	status := o.models.addKind(&metav1.Status{}, schema.GroupVersionKind{Version: "v1", Kind: "Status"})
	v := o.newOperation("delete", "deletecollection", "delete all objects of kind", status, "200")
	v.Parameters = append(queryParameters(metav1.DeleteOptions{}), queryParameters(metav1.ListOptions{})...)
	v.Body = o.deleteBody()
	return v
}

// deleteBody returns the body of a delete request, which is optional.
func (o operations) deleteBody() *Body {
	kind := o.kind.GroupVersion().WithKind("DeleteOptions")
	return &Body{Content: jsonContent(o.models.addKind(&metav1.DeleteOptions{}, kind))}
}
