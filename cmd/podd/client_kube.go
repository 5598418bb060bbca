package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asTables asks the Kubernetes API for what kubectl prints.
const asTables = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// kubeResource is a kind of objects that podd serves below root.
type kubeResource struct {
	metav1.APIResource
	root string
}

// path is where its objects are, or the named one.
func (r kubeResource) path(namespace, name string) string {
	path := r.root
	if r.Namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + r.Name
	if name != "" {
		path += "/" + name
	}
	return path
}

// title is what kubectl calls an object of it.
func (r kubeResource) title(name string) string {
	if r.Group != "" {
		return r.SingularName + "." + r.Group + "/" + name
	}
	return r.SingularName + "/" + name
}

// fetch decodes an answer of the Kubernetes API into to.
func (p *peer) fetch(ctx context.Context, path string, q url.Values, accept string, to any) error {
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	resp, err := p.ask(limited, http.MethodGet, path, q, nil, accept)
	if err != nil {
		return p.slow(ctx, err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(to); err != nil {
		return p.slow(ctx, fmt.Errorf("reading the answer of podd at %s: %w", p.socket, err))
	}
	return nil
}

// kubeResources are all that can be listed, those of the core first.
func (p *peer) kubeResources(ctx context.Context) ([]kubeResource, error) {
	roots := []string{"/api/v1"}
	var groups metav1.APIGroupList
	if err := p.fetch(ctx, "/apis", nil, "", &groups); err != nil {
		return nil, err
	}
	for _, g := range groups.Groups {
		roots = append(roots, "/apis/"+g.PreferredVersion.GroupVersion)
	}
	var all []kubeResource
	for _, root := range roots {
		var list metav1.APIResourceList
		if err := p.fetch(ctx, root, nil, "", &list); err != nil {
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
			all = append(all, kubeResource{r, root})
		}
	}
	return all, nil
}

// chooseResources are those of a word: "pods", "po", "all", "pods,nodes".
func chooseResources(all []kubeResource, words string) ([]kubeResource, error) {
	var chosen []kubeResource
	for word := range strings.SplitSeq(strings.ToLower(words), ",") {
		found := filter(all, func(r kubeResource) bool { return r.is(word) })
		if len(found) > 0 {
			found = found[:1] // the core's comes before others of the name
		} else if found = filter(all, func(r kubeResource) bool { return slices.Contains(r.Categories, word) }); len(found) == 0 {
			return nil, unknownResource(all, word)
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}

// is says whether a user may mean it by word.
func (r kubeResource) is(word string) bool {
	return word == r.Name || word == r.SingularName || word == r.Name+"."+r.Group || slices.Contains(r.ShortNames, word)
}

func unknownResource(all []kubeResource, word string) error {
	var names []string
	for _, r := range all {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return fmt.Errorf("podd has no %q; it has %s", word, strings.Join(names, ", "))
}
