package kube

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podd/server/kube/openapi"
	"podd/server/kube/resource"
)

// describedVerbs are documented for all objects of manifests, even if podd rejects these requests.
// kubectl first checks whether a PATCH is documented. If it were not documented, kubectl would
// report this instead of podd's error.
var describedVerbs = []string{"create", "update", "patch", "delete"}

// subresourceOptions maps the name of a subresource to a struct with fields that are its query
// parameters.
var subresourceOptions = map[string]any{
	"attach": &v1.PodAttachOptions{}, "exec": &v1.PodExecOptions{}, "log": &v1.PodLogOptions{}, "portforward": &v1.PodPortForwardOptions{},
	"proxy": &v1.NodeProxyOptions{},
}

// writableResources returns the resources that can be written.
func (a *API) writableResources() []openapi.Resource {
	var definitions []*resource.Definition
	for _, r := range a.resources {
		if r.IsInManifests() {
			definitions = append(definitions, r)
		}
	}
	return toOpenAPI(definitions)
}

// toOpenAPI returns the descriptions of resources for OpenAPI.
func toOpenAPI(definitions []*resource.Definition) []openapi.Resource {
	var resources []openapi.Resource
	for _, r := range definitions {
		if r.NewObject == nil || r.Measure != nil { // omit reviews and metrics, for which kubectl explain is not useful
			continue
		}
		d := openapi.Resource{Kind: r.GroupVersionKind(), Object: r.NewObject(), Plural: r.Name, Namespaced: r.Namespaced, Verbs: r.Verbs}
		if r.Items != nil {
			d.Verbs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.Verbs, describedVerbs))))
		}
		for _, s := range r.Subresources {
			sub := openapi.Subresource{Name: s.Name, Kind: schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: s.Kind}, Options: subresourceOptions[s.Name], Verbs: s.Verbs}
			if sub.Options == nil {
				sub.Object = r.NewObject()
			}
			d.Subresources = append(d.Subresources, sub)
		}
		resources = append(resources, d)
	}
	return resources
}
