package client

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AcceptTables is the Accept header with which kubectl get requests tables.
const AcceptTables = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// A Resource is a resource type that podd serves below root.
type Resource struct {
	metav1.APIResource
	Root string
}

// Path returns the URL path of the object with a name, or of the whole resource if name is
// empty.
func (r Resource) Path(namespace, name string) string {
	path := r.Root
	if r.Namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + r.Name
	if name != "" {
		path += "/" + name
	}
	return path
}

// Title returns an object's type and name in kubectl's form.
func (r Resource) Title(name string) string {
	if r.Group != "" {
		return r.SingularName + "." + r.Group + "/" + name
	}
	return r.SingularName + "/" + name
}

// Fetch gets path from the Kubernetes API and decodes the response into to. accept is the
// Accept header, or "" for JSON.
func (p *Client) Fetch(ctx context.Context, path string, q url.Values, accept string, to any) error {
	return p.fetch(ctx, http.MethodGet, path, q, nil, acceptHeader(accept), to)
}

// WatchObjects calls each with every event of a watch in the Kubernetes API until each
// returns done or an error. q contains the parameters of the watch.
func (p *Client) WatchObjects(ctx context.Context, path string, q url.Values, accept string, each func(*metav1.WatchEvent) (done bool, err error)) error {
	resp, err := p.callWithHeader(ctx, http.MethodGet, path, q, nil, acceptHeader(accept))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return eachValue(ctx, resp.Body, each)
}

func acceptHeader(accept string) http.Header {
	if accept == "" {
		return nil
	}
	return http.Header{"Accept": {accept}}
}

// KubeResources returns all resource types that can be listed. Those of the core group come
// first.
func (p *Client) KubeResources(ctx context.Context) ([]Resource, error) {
	roots := []string{"/api/v1"}
	var groups metav1.APIGroupList
	if err := p.Fetch(ctx, "/apis", nil, "", &groups); err != nil {
		return nil, err
	}
	for _, g := range groups.Groups {
		roots = append(roots, "/apis/"+g.PreferredVersion.GroupVersion)
	}
	var all []Resource
	for _, root := range roots {
		var list metav1.APIResourceList
		if err := p.Fetch(ctx, root, nil, "", &list); err != nil {
			return nil, err
		}
		group, _, grouped := strings.Cut(list.GroupVersion, "/")
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			if r.Group == "" && grouped {
				r.Group = group
			}
			all = append(all, Resource{r, root})
		}
	}
	return all, nil
}

// Matches reports whether word is a name of the resource type: plural, singular or short.
func (r Resource) Matches(word string) bool {
	return word == r.Name || word == r.SingularName || word == r.Name+"."+r.Group || slices.Contains(r.ShortNames, word)
}
