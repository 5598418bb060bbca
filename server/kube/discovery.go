package kube

import (
	"net/http"
	"slices"
	"strings"

	discovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

func under(path, root string) bool { return strings.HasPrefix(path, root+"/") }

// discover answers what is no resource: which groups, versions and resources
// there are, in the form of old and in the aggregated one.
func (a *API) discover(w http.ResponseWriter, r *http.Request, path string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		server.ReplyStatus(w, &server.Error{Status: http.StatusMethodNotAllowed, Message: "the server does not allow this method on the requested resource"})
		return
	}
	f, err := negotiate(accepted(r), discoveryForms(path)...)
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	if f.as == asDiscovery {
		w.Header().Set("Vary", "Accept")
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		w.Write(encode(a.aggregated(path == "/api")))
		return
	}
	answer := a.described(path, r.Host)
	if answer == nil {
		server.ReplyStatus(w, errNoPath)
		return
	}
	w.Header().Set("Vary", "Accept")
	server.Reply(w, http.StatusOK, answer)
}

// discoveryForms: only at the top everything is told at once.
func discoveryForms(path string) []string {
	if path == "/api" || path == "/apis" {
		return []string{asDiscovery}
	}
	return nil
}

// described is what there is at a path; nil for nothing.
func (a *API) described(path, host string) any {
	switch path {
	case "/version":
		return thisVersion()
	case "/api":
		return metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: host}},
		}
	case "/api/v1":
		return a.resourceList("", "v1")
	case "/apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
		for _, g := range a.groups() {
			list.Groups = append(list.Groups, g.described())
		}
		return list
	}
	for _, g := range a.groups() {
		switch path {
		case "/apis/" + g.name:
			one := g.described()
			one.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return one
		case "/apis/" + g.name + "/" + g.version:
			return a.resourceList(g.name, g.version)
		}
	}
	return nil
}

// group is one of the API's; each has one version.
type group struct{ name, version string }

// groups are those with a name, in their order.
func (a *API) groups() []group {
	var all []group
	for _, r := range a.resources {
		if g := (group{r.group, r.version}); g.name != "" && !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	return all
}

func (g group) described() metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: g.name + "/" + g.version, Version: g.version}
	return metav1.APIGroup{Name: g.name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

func (a *API) resourceList(name, version string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: strings.TrimPrefix(name+"/"+version, "/")}
	for _, r := range a.resources {
		if r.group != name || r.version != version {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.name, SingularName: r.singular, Namespaced: r.namespaced, Kind: r.kind, Verbs: r.verbs,
			ShortNames: r.short, Categories: r.categories,
		})
		for _, s := range r.subresources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.name + "/" + s.name, Namespaced: r.namespaced, Kind: s.kind, Verbs: s.verbs})
		}
	}
	return list
}

// aggregated is all there is of the core group, or of the others.
func (a *API) aggregated(core bool) discovery.APIGroupDiscoveryList {
	list := discovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: asDiscovery, APIVersion: discovery.SchemeGroupVersion.String()},
		Items:    []discovery.APIGroupDiscovery{},
	}
	groups := a.groups()
	if core {
		groups = []group{{"", "v1"}}
	}
	for _, g := range groups {
		v := discovery.APIVersionDiscovery{Version: g.version, Freshness: discovery.DiscoveryFreshnessCurrent}
		for _, r := range a.resources {
			if r.group == g.name && r.version == g.version {
				v.Resources = append(v.Resources, r.aggregated())
			}
		}
		list.Items = append(list.Items, discovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}, Versions: []discovery.APIVersionDiscovery{v}})
	}
	return list
}

func (r *resource) aggregated() discovery.APIResourceDiscovery {
	kind := func(kind string) *metav1.GroupVersionKind {
		return &metav1.GroupVersionKind{Group: r.group, Version: r.version, Kind: kind}
	}
	d := discovery.APIResourceDiscovery{
		Resource: r.name, ResponseKind: kind(r.kind), Scope: discovery.ScopeCluster, SingularResource: r.singular,
		Verbs: r.verbs, ShortNames: r.short, Categories: r.categories,
	}
	if r.namespaced {
		d.Scope = discovery.ScopeNamespace
	}
	for _, s := range r.subresources {
		d.Subresources = append(d.Subresources, discovery.APISubresourceDiscovery{Subresource: s.name, ResponseKind: kind(s.kind), Verbs: s.verbs})
	}
	return d
}
