package client

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AcceptTables is the Accept header of kubectl get, which requests a Table.
const AcceptTables = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// A Resource is a resource type of the Kubernetes API that podd serves.
type Resource struct {
	metav1.APIResource
	GroupVersionPath string // URL path of the group and version, such as /api/v1
}

// Path returns the URL path of an object. If name is "", it returns the URL path of all objects
// in the namespace. If namespace is also "", it returns the URL path of all objects.
func (r Resource) Path(namespace, name string) string {
	path := r.GroupVersionPath
	if r.Namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + r.Name
	if name != "" {
		path += "/" + name
	}
	return path
}

// NameWithType returns the resource type and name of an object in the format of kubectl -o name,
// such as pod/web.
func (r Resource) NameWithType(name string) string {
	if r.Group != "" {
		return r.SingularName + "." + r.Group + "/" + name
	}
	return r.SingularName + "/" + name
}

// Fetch sends a GET request for a path of the Kubernetes API and decodes the response into a value.
// accept is the Accept header; "" means JSON.
func (p *Client) Fetch(ctx context.Context, path string, query url.Values, accept string, to any) error {
	return p.callAndDecode(ctx, http.MethodGet, path, query, nil, acceptHeader(accept), to)
}

// WatchObjects watches a path of the Kubernetes API, and passes every watch event to onEvent. It
// returns when onEvent returns true (done) or an error. query contains the query parameters of the
// watch.
func (p *Client) WatchObjects(ctx context.Context, path string, query url.Values, accept string, onEvent func(*metav1.WatchEvent) (done bool, err error)) error {
	resp, err := p.callWithHeader(ctx, http.MethodGet, path, query, nil, acceptHeader(accept))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decodeEach(ctx, resp.Body, onEvent)
}

// acceptHeader returns the header Accept, or no header if accept is "".
func acceptHeader(accept string) http.Header {
	if accept == "" {
		return nil
	}
	return http.Header{"Accept": {accept}}
}

// ListResources returns all resource types of the Kubernetes API that can be listed. The types of
// the core group are the first.
func (p *Client) ListResources(ctx context.Context) ([]Resource, error) {
	roots := []string{"/api/v1"}
	var groups metav1.APIGroupList
	if err := p.Fetch(ctx, "/apis", nil, "", &groups); err != nil {
		return nil, err
	}
	for _, g := range groups.Groups {
		roots = append(roots, "/apis/"+g.PreferredVersion.GroupVersion)
	}
	var types []Resource
	for _, root := range roots {
		var list metav1.APIResourceList
		if err := p.Fetch(ctx, root, nil, "", &list); err != nil {
			return nil, err
		}
		group, _, hasGroup := strings.Cut(list.GroupVersion, "/")
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			if r.Group == "" && hasGroup {
				r.Group = group
			}
			types = append(types, Resource{r, root})
		}
	}
	return types, nil
}

// Matches reports whether word is the plural, singular or short name of the resource type.
func (r Resource) Matches(word string) bool {
	return word == r.Name || word == r.SingularName || word == r.Name+"."+r.Group || slices.Contains(r.ShortNames, word)
}
