package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest/wording"
	"podd/server"
)

// A PodSelector contains the namespace flags of a verb that finds pods by name. It selects the
// pods of one namespace, or of all namespaces if Namespace is "".
type PodSelector struct {
	Namespace     string `short:"n" placeholder:"NS" xor:"namespace" help:"If present, the namespace scope for this command." complete:"namespace"`
	AllNamespaces bool   `short:"A" xor:"namespace" help:"Use all namespaces (default)."`
}

// includes reports whether pods of namespace are selected.
func (s PodSelector) includes(namespace string) bool {
	return s.Namespace == "" || s.Namespace == namespace
}

// A ListScope contains the namespace flags of a verb that lists objects as kubectl does. Without a
// flag, the verb lists the namespace "default", but finds a named pod in any namespace, as all
// verbs do.
type ListScope struct {
	Namespace     string `short:"n" placeholder:"NS" xor:"namespace" help:"If present, the namespace scope for this command. Default: the namespace default, or all namespaces for a named pod." complete:"namespace"`
	AllNamespaces bool   `short:"A" xor:"namespace" help:"List the requested objects across all namespaces."`
}

// namespace returns the namespace of the objects to list, or "" for all namespaces.
func (s ListScope) namespace() string {
	if s.AllNamespaces {
		return ""
	}
	return cmp.Or(s.Namespace, metav1.NamespaceDefault)
}

// podSelector returns the PodSelector for pods that are named as arguments.
func (s ListScope) podSelector() PodSelector { return PodSelector{Namespace: s.Namespace} }

// shortName returns the name of a pod without the node name at its end.
func shortName(v *server.View, name string) string {
	if shortName := strings.TrimSuffix(name, "-"+v.Node); shortName != "" {
		return shortName
	}
	return name
}

// displayName returns the namespace and the short name of a pod, separated by a slash.
func displayName(v *server.View, k server.Key) string {
	return k.Namespace + "/" + shortName(v, k.Name)
}

// findKey returns the key in keys that arg matches. It returns an error if arg matches no key or
// several keys. arg is "web", "web-node", "namespace/web" or, as in kubectl, "pod/web".
func (s PodSelector) findKey(v *server.View, keys []server.Key, arg string) (server.Key, error) {
	namespace, name, hasNamespace := strings.Cut(arg, "/")
	if hasNamespace && isPodResource(namespace) && !slices.ContainsFunc(keys, func(k server.Key) bool { return k.Namespace == namespace }) {
		arg, hasNamespace = name, false
	}
	switch {
	case !hasNamespace:
		namespace, name = s.Namespace, arg
	case !s.includes(namespace):
		return server.Key{}, fmt.Errorf("pod %q is not in namespace %s, to which -n limits this command", arg, s.Namespace)
	}
	matches := func(k server.Key) bool { return matchesName(v, k, name) }
	found := filter(keys, func(k server.Key) bool {
		return matches(k) && (namespace == "" || k.Namespace == namespace)
	})
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return server.Key{}, fmt.Errorf("pod name %q is ambiguous; use %s", arg, joinKeys(found, "or"))
	}
	if elsewhere := filter(keys, matches); len(elsewhere) > 0 {
		return server.Key{}, fmt.Errorf("no pod %q in namespace %s; there is %s", name, namespace, joinKeys(elsewhere, "and"))
	}
	return server.Key{}, unknownPodError(v, keys, arg, name)
}

// isPodResource reports whether name is a name of the resource type pods. A user may write this
// name before the name of a pod, as in "pod/web".
func isPodResource(name string) bool { return slices.Contains([]string{"pod", "pods", "po"}, name) }

// unknownPodError returns the error for an argument that matches no pod. It suggests a similar name
// if there is one.
func unknownPodError(v *server.View, keys []server.Key, arg, name string) error {
	switch {
	case v.Starting:
		return fmt.Errorf("no pod %q yet; podd is starting and has not listed the pods of the runtime", arg)
	case len(keys) == 0:
		return fmt.Errorf("no pod %q; podd has no pods", arg)
	}
	var names []string
	for _, k := range keys {
		names = append(names, shortName(v, k.Name))
	}
	if near := wording.FindClosest(name, names); near != "" {
		return fmt.Errorf("no pod %q; did you mean %q?", arg, near)
	}
	return fmt.Errorf("no pod %q; \"podd ps\" lists all pods", arg)
}

// matchesName reports whether name is the full or the short name of k.
func matchesName(v *server.View, k server.Key, name string) bool {
	return k.Name == name || shortName(v, k.Name) == name
}

// findPod returns the pod that arg selects.
func (s PodSelector) findPod(v *server.View, arg string) (*server.PodView, error) {
	key, err := s.findKey(v, podKeys(v), arg)
	if err != nil {
		return nil, err
	}
	return v.Pod(key), nil
}

// podKeys returns the keys of all pods in v.
func podKeys(v *server.View) []server.Key {
	keys := make([]server.Key, 0, len(v.Pods))
	for _, p := range v.Pods {
		keys = append(keys, p.Key())
	}
	return keys
}

// podAndProblemKeys returns the keys of all pods in v and of all rejected pods. A rejected pod is
// not in v.Pods, but a problem in v names it.
func podAndProblemKeys(v *server.View) []server.Key {
	keys := podKeys(v)
	for _, q := range v.Problems {
		if q.Pod != (server.Key{}) && !slices.Contains(keys, q.Pod) {
			keys = append(keys, q.Pod)
		}
	}
	return keys
}

// filter returns the elements for which the function keep returns true.
func filter[T any](all []T, keep func(T) bool) []T {
	var out []T
	for _, x := range all {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// joinKeys joins keys with commas, and the last two with a conjunction.
func joinKeys(keys []server.Key, conjunction string) string {
	var names []string
	for _, k := range keys {
		names = append(names, k.String())
	}
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + conjunction + " " + names[last]
}
