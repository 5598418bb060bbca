package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// These types are encoded like the types of package k8s.io/api/apidiscovery/v2 with similar names. That
// package would make the binary 56 KB larger, because it registers its types with all their methods.
type (
	groupDiscoveryList struct {
		metav1.TypeMeta
		Metadata metav1.ListMeta  `json:"metadata"`
		Items    []groupDiscovery `json:"items"`
	}
	groupDiscovery struct {
		Metadata metav1.ObjectMeta  `json:"metadata"`
		Versions []versionDiscovery `json:"versions"`
	}
	versionDiscovery struct {
		Version   string              `json:"version"`
		Resources []resourceDiscovery `json:"resources"`
		Freshness string              `json:"freshness"`
	}
	resourceDiscovery struct {
		Resource         string                  `json:"resource"`
		ResponseKind     metav1.GroupVersionKind `json:"responseKind"`
		Scope            string                  `json:"scope"`
		SingularResource string                  `json:"singularResource"`
		Verbs            []string                `json:"verbs"`
		ShortNames       []string                `json:"shortNames,omitempty"`
		Categories       []string                `json:"categories,omitempty"`
		Subresources     []subresourceDiscovery  `json:"subresources,omitempty"`
	}
	subresourceDiscovery struct {
		Subresource  string                  `json:"subresource"`
		ResponseKind metav1.GroupVersionKind `json:"responseKind"`
		Verbs        []string                `json:"verbs"`
	}
)

// aggregatedDiscovery returns the aggregated discovery of the core group or of all other groups.
func (a *API) aggregatedDiscovery(isCore bool) groupDiscoveryList {
	list := groupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: request.AsDiscovery, APIVersion: "apidiscovery.k8s.io/v2"},
		Items:    []groupDiscovery{},
	}
	groups := a.groups()
	if isCore {
		groups = []group{{"", "v1"}}
	}
	for _, g := range groups {
		v := versionDiscovery{Version: g.version, Freshness: "Current"}
		for _, r := range a.resources {
			if r.Group == g.name && r.Version == g.version {
				v.Resources = append(v.Resources, aggregatedResource(r))
			}
		}
		list.Items = append(list.Items, groupDiscovery{metav1.ObjectMeta{Name: g.name}, []versionDiscovery{v}})
	}
	return list
}

// aggregatedResource returns the aggregated discovery of a resource and its subresources.
func aggregatedResource(r *resource.Definition) resourceDiscovery {
	newKind := func(kind string) metav1.GroupVersionKind {
		return metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: kind}
	}
	d := resourceDiscovery{
		Resource: r.Name, ResponseKind: newKind(r.Kind), Scope: "Cluster", SingularResource: r.Singular,
		Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
	}
	if r.Namespaced {
		d.Scope = "Namespaced"
	}
	for _, s := range r.Subresources {
		d.Subresources = append(d.Subresources, subresourceDiscovery{s.Name, newKind(s.Kind), s.Verbs})
	}
	return d
}
