package kube

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// isBelow reports whether path is below root.
func isBelow(path, root string) bool { return strings.HasPrefix(path, root+"/") }

// discover serves discovery: the groups, versions and resources of the API, in the legacy
// and in the aggregated format. It responds to all other paths with 404.
func (a *API) discover(w http.ResponseWriter, r *http.Request, path string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		server.ReplyStatus(w, &server.Error{Status: http.StatusMethodNotAllowed, Message: "the server does not allow this method on the requested resource"})
		return
	}
	representation, err := request.Negotiate(r, discoveryRepresentations(path)...)
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	if representation == request.AsDiscovery {
		w.Header().Set("Vary", "Accept")
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		w.Write(resource.Encode(a.aggregatedDiscovery(path == "/api")))
		return
	}
	response := a.discoveryResponse(path, r.Host)
	if response == nil {
		server.ReplyStatus(w, errUnknownPath)
		return
	}
	w.Header().Set("Vary", "Accept")
	server.Reply(w, http.StatusOK, response)
}

// discoveryRepresentations returns the available representations of a discovery path. The
// aggregated format is available only at /api and /apis.
func discoveryRepresentations(path string) []string {
	if path == "/api" || path == "/apis" {
		return []string{request.AsDiscovery}
	}
	return nil
}

// discoveryResponse returns the response for a discovery path, or nil if there is none.
func (a *API) discoveryResponse(path, host string) any {
	switch path {
	case "/version":
		return newVersionInfo(a.KubernetesVersion)
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
			list.Groups = append(list.Groups, g.apiGroup())
		}
		return list
	}
	for _, g := range a.groups() {
		switch path {
		case "/apis/" + g.name:
			apiGroup := g.apiGroup()
			apiGroup.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return apiGroup
		case "/apis/" + g.name + "/" + g.version:
			return a.resourceList(g.name, g.version)
		}
	}
	return nil
}

// A group is an API group. podd serves one version of each group.
type group struct{ name, version string }

// groups returns the groups other than the core group, in the order of discovery.
func (a *API) groups() []group {
	var groups []group
	for _, r := range a.resources {
		if g := (group{r.Group, r.Version}); g.name != "" && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

func (g group) apiGroup() metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: g.name + "/" + g.version, Version: g.version}
	return metav1.APIGroup{Name: g.name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

func (a *API) resourceList(name, version string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: strings.TrimPrefix(name+"/"+version, "/")}
	for _, r := range a.resources {
		if r.Group != name || r.Version != version {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Name, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: r.Verbs,
			ShortNames: r.ShortNames, Categories: r.Categories,
		})
		for _, s := range r.Subresources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.Name + "/" + s.Name, Namespaced: r.Namespaced, Kind: s.Kind, Verbs: s.Verbs})
		}
	}
	return list
}
