package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/config"
	"podd/server"
)

// Select narrows pods to namespaces.
type Select struct {
	Namespace     string `short:"n" placeholder:"NS" xor:"namespace" help:"Pods of this namespace only." complete:"namespace"`
	AllNamespaces bool   `short:"A" xor:"namespace" help:"Pods of all namespaces; so it is without -n."`
}

// keeps says whether pods of a namespace are meant.
func (s Select) keeps(namespace string) bool { return s.Namespace == "" || s.Namespace == namespace }

// Scope is where a verb that lists as kubectl does looks: namespace default, unless
// told. A pod that is named is found wherever it is, as by all verbs.
type Scope struct {
	Namespace     string `short:"n" placeholder:"NS" xor:"namespace" help:"Of this namespace; else of default, and a named pod wherever it is." complete:"namespace"`
	AllNamespaces bool   `short:"A" xor:"namespace" help:"Of all namespaces."`
}

// namespace is where to list; "": in all.
func (s Scope) namespace() string {
	if s.AllNamespaces {
		return ""
	}
	return orElse(s.Namespace, metav1.NamespaceDefault)
}

// named is where to find what is named.
func (s Scope) named() Select { return Select{Namespace: s.Namespace} }

// shortName is a pod's name as its author knows it: without the node's.
func shortName(v *server.View, name string) string {
	if short := strings.TrimSuffix(name, "-"+v.Node); short != "" {
		return short
	}
	return name
}

// title is a pod's namespace and short name.
func title(v *server.View, k server.Key) string { return k.Namespace + "/" + shortName(v, k.Name) }

// find returns the one key that a user means by "web", "web-node",
// "namespace/web" or, as with kubectl, "pod/web".
func (s Select) find(v *server.View, keys []server.Key, word string) (server.Key, error) {
	namespace, name, given := strings.Cut(word, "/")
	if given && slices.Contains([]string{"pod", "pods", "po"}, namespace) && !slices.ContainsFunc(keys, func(k server.Key) bool { return k.Namespace == namespace }) {
		word, given = name, false
	}
	switch {
	case !given:
		namespace, name = s.Namespace, word
	case !s.keeps(namespace):
		return server.Key{}, fmt.Errorf("%q is not in namespace %s, which -n asks for", word, s.Namespace)
	}
	meant := func(k server.Key) bool { return names(v, k, name) }
	found := filter(keys, func(k server.Key) bool {
		return meant(k) && (namespace == "" || k.Namespace == namespace)
	})
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return server.Key{}, fmt.Errorf("%q is %s: say which, as NAMESPACE/NAME", word, joined(found))
	}
	if elsewhere := filter(keys, meant); len(elsewhere) > 0 {
		return server.Key{}, fmt.Errorf("no pod %q in namespace %s; there is %s", name, namespace, joined(elsewhere))
	}
	return server.Key{}, unknownPodError(v, keys, word, name)
}

// unknownPodError suggests what is near.
func unknownPodError(v *server.View, keys []server.Key, word, name string) error {
	switch {
	case v.Starting:
		return fmt.Errorf("no pod %q seen yet; podd has just started and has not looked at the runtime", word)
	case len(keys) == 0:
		return fmt.Errorf("no pod %q; podd runs none", word)
	}
	var names []string
	for _, k := range keys {
		names = append(names, shortName(v, k.Name))
	}
	if near := config.Nearest(name, names); near != "" {
		return fmt.Errorf("no pod %q; did you mean %q?", word, near)
	}
	return fmt.Errorf("no pod %q; podd ps lists them", word)
}

// names says whether a user may mean k by name.
func names(v *server.View, k server.Key, name string) bool {
	return k.Name == name || shortName(v, k.Name) == name
}

// findPod returns the pod that a user means.
func (s Select) findPod(v *server.View, word string) (*server.PodView, error) {
	key, err := s.find(v, podKeys(v), word)
	if err != nil {
		return nil, err
	}
	return v.Pod(key), nil
}

// findPod asks podd for the pod that a user means, and for all it shows.
func (p *peer) findPod(ctx context.Context, s Select, word string) (*server.View, *server.PodView, error) {
	v, err := p.state(ctx)
	if err != nil {
		return nil, nil, err
	}
	pod, err := s.findPod(v, word)
	return v, pod, err
}

// look finds podd and asks what it shows.
func (c Client) look(ctx context.Context) (*peer, *server.View, error) {
	p, err := c.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	v, err := p.state(ctx)
	return p, v, err
}

// reach finds podd and a pod there, and the word that other verbs know it by.
func (c Client) reach(ctx context.Context, s Select, word string) (*peer, *server.PodView, string, error) {
	p, err := c.connect(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	v, pod, err := p.findPod(ctx, s, word)
	if err != nil {
		return nil, nil, "", err
	}
	return p, pod, wordFor(v, pod.Key()), nil
}

// podKeys are the keys of all pods shown.
func podKeys(v *server.View) []server.Key {
	keys := make([]server.Key, 0, len(v.Pods))
	for _, p := range v.Pods {
		keys = append(keys, p.Key())
	}
	return keys
}

// knownKeys are those of all pods and of those that only a problem speaks of.
func knownKeys(v *server.View) []server.Key {
	keys := podKeys(v)
	for _, q := range v.Problems {
		if q.Pod != (server.Key{}) && !slices.Contains(keys, q.Pod) {
			keys = append(keys, q.Pod)
		}
	}
	return keys
}

func filter[T any](all []T, keep func(T) bool) []T {
	var out []T
	for _, x := range all {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// joined lists keys as a sentence does.
func joined(keys []server.Key) string {
	var words []string
	for _, k := range keys {
		words = append(words, k.String())
	}
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
