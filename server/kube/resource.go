package kube

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podd/server"
)

// resource is a kind of objects that the API serves.
type resource struct {
	group, version       string
	name, singular, kind string
	short, categories    []string
	namespaced           bool
	verbs                []string
	subresources         []subresource
	goType
	// items are the objects of a View, in order of namespace and name.
	items func(*server.View) []item
	// beside are those of the objects beside the pods.
	beside func(*server.Objects) []*server.ObjectView
	// extra are the fields, beside the names, that lists can be selected by.
	extra func(server.Object) fields.Set
	// since is when an object came that does not tell, so that clients can show
	// its age and sort by it; nil: all tell, or nobody knows.
	since func(server.Object) metav1.Time
	// Not all are objects of a View.
	events  bool                                            // they are of Events
	measure measure                                         // measured when asked for
	review  func(*API, context.Context, asked) (any, error) // answered, not kept
}

// subresource is a part of an object that is served by itself.
type subresource struct {
	name, kind string // of what is taken
	verbs      []string
}

// item is an object as its source has it, without kind and resourceVersion. It
// and what it points to are immutable.
type item struct {
	key    server.Key
	object server.Object
}

func (r *resource) gr() schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.name}
}

func (r *resource) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.group, Version: r.version, Kind: r.kind}
}

func (r *resource) has(sub string) bool {
	return slices.ContainsFunc(r.subresources, func(s subresource) bool { return s.name == sub })
}

func (r *resource) watched() bool { return slices.Contains(r.verbs, "watch") }

var (
	reads   = []string{"get", "list", "watch"}
	asks    = []string{"get", "list"}
	changes = []string{"create", "update", "patch", "delete", "deletecollection"}
	creates = []string{"create"}
	gets    = []string{"get"}
)

// status is the subresource that reads as the object itself.
func status(kind string) subresource { return subresource{"status", kind, gets} }

// served are the resources of this node, in the order of discovery.
func (a *API) served() []*resource {
	all := []*resource{
		{name: "configmaps", kind: "ConfigMap", short: []string{"cm"}, namespaced: true, goType: typed[v1.ConfigMap](),
			beside: func(o *server.Objects) []*server.ObjectView { return o.ConfigMaps }},
		{name: "events", kind: "Event", short: []string{"ev"}, namespaced: true, goType: typed[v1.Event](), events: true, extra: eventFields},
		{name: "namespaces", kind: "Namespace", short: []string{"ns"}, goType: typed[v1.Namespace](), items: namespaces,
			extra: namespaceFields, subresources: []subresource{status("Namespace")}},
		{name: "nodes", kind: "Node", short: []string{"no"}, goType: typed[v1.Node](), items: nodes, extra: nodeFields,
			subresources: []subresource{{"proxy", "NodeProxyOptions", proxied}, status("Node")}},
		{name: "persistentvolumeclaims", kind: "PersistentVolumeClaim", short: []string{"pvc"}, namespaced: true, goType: typed[v1.PersistentVolumeClaim](),
			beside:       func(o *server.Objects) []*server.ObjectView { return o.Claims },
			subresources: []subresource{status("PersistentVolumeClaim")}},
		{name: "persistentvolumes", kind: "PersistentVolume", short: []string{"pv"}, goType: typed[v1.PersistentVolume](),
			beside:       func(o *server.Objects) []*server.ObjectView { return o.Volumes },
			subresources: []subresource{status("PersistentVolume")}},
		{name: "pods", kind: "Pod", short: []string{"po"}, categories: []string{"all"}, namespaced: true, goType: typed[v1.Pod](),
			items: pods, extra: podFields, since: podSince, subresources: a.podSubresources()},
		{name: "secrets", kind: "Secret", namespaced: true, goType: typed[v1.Secret](), extra: secretFields,
			beside: func(o *server.Objects) []*server.ObjectView { return o.Secrets }},
	}
	all = append(all, reviews()...)
	if a.Usage != nil {
		all = append(all, measured()...)
	}
	for _, r := range all {
		r.complete()
		if a.Manifests != nil && (r.beside != nil || r.name == "pods" && r.measure == nil) {
			r.verbs = slices.Concat(reads, changes)
		}
	}
	return all
}

// complete sets what most have in common.
func (r *resource) complete() {
	if r.version == "" {
		r.version = "v1"
	}
	if r.verbs == nil {
		r.verbs = reads
	}
	if r.singular == "" {
		r.singular = lower(r.kind)
	}
	if r.beside != nil {
		r.items = objects(r.beside)
	}
	if r.extra == nil {
		r.extra = func(server.Object) fields.Set { return nil }
	}
}

// goType is what objects are in Go.
type goType struct {
	blank func() server.Object
	// copy is an object's own, but for what it points to.
	copy func(server.Object) server.Object
}

func typed[T any, P interface {
	*T
	server.Object
}]() goType {
	return goType{
		blank: func() server.Object { return P(new(T)) },
		copy: func(o server.Object) server.Object {
			c := *(o.(P))
			return P(&c)
		},
	}
}
