package kube

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podd/server/kube/openapi"
)

// written are the verbs that are described of what manifests are written of,
// though they are refused: kubectl asks whether there is a PATCH before it asks
// for anything else, and would tell of its absence instead of the refusal.
var written = []string{"create", "update", "patch", "delete"}

// options are the parameters of subresources that read nothing else.
var options = map[string]any{
	"attach": &v1.PodAttachOptions{}, "exec": &v1.PodExecOptions{}, "log": &v1.PodLogOptions{}, "portforward": &v1.PodPortForwardOptions{},
	"proxy": &v1.NodeProxyOptions{},
}

// writable are those that may be written.
func (a *API) writable() []openapi.Resource {
	var all []*resource
	for _, r := range a.resources {
		if r.beside != nil || r.name == "pods" && r.measure == nil {
			all = append(all, r)
		}
	}
	return described(all)
}

// described are the resources as OpenAPI tells of them.
func described(all []*resource) []openapi.Resource {
	var out []openapi.Resource
	for _, r := range all {
		if r.blank == nil || r.measure != nil { // reviews and measurements have no fields to explain
			continue
		}
		d := openapi.Resource{Kind: r.gvk(), Object: r.blank(), Plural: r.name, Namespaced: r.namespaced, Verbs: r.verbs}
		if r.items != nil {
			d.Verbs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.verbs, written))))
		}
		for _, s := range r.subresources {
			sub := openapi.Subresource{Name: s.name, Kind: schema.GroupVersionKind{Group: r.group, Version: r.version, Kind: s.kind}, Options: options[s.name], Verbs: s.verbs}
			if sub.Options == nil {
				sub.Object = r.blank()
			}
			d.Subresources = append(d.Subresources, sub)
		}
		out = append(out, d)
	}
	return out
}
