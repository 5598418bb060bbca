package resource

import (
	"fmt"
	"slices"
	"strings"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podd/server"
)

// Definition defines a resource that the API serves.
type Definition struct {
	Group, Version         string
	Name, Singular, Kind   string
	ShortNames, Categories []string
	Namespaced             bool
	Verbs                  []string
	Subresources           []Subresource
	goType
	// Items returns the objects of a View, sorted by namespace and name. It is nil for resources
	// whose objects are not in a View.
	Items func(*server.View) []Item
	// SelectObjects returns the objects of this resource that are in the given Objects. It is nil
	// for resources that are not in Objects.
	SelectObjects func(*server.Objects) []*server.ObjectView
	// IsEvents is set for the resource of the node's events.
	IsEvents bool
	// Measure returns objects that are computed for each request from the resource usage, in the
	// order of the View's pods. It is nil for resources without such objects.
	Measure func(*server.Usage, *server.View) []Item

	// selectableFields returns the fields that field selectors can refer to, in addition to
	// the name and the namespace.
	selectableFields func(server.Object) fields.Set
	// creationTime returns the creation time of an object without creationTimestamp, so that
	// clients can show and sort by age. It is nil for resources whose objects have a
	// creationTimestamp.
	creationTime func(server.Object) metav1.Time
}

// EphemeralContainers is the subresource of pods for adding ephemeral containers.
const EphemeralContainers = "ephemeralcontainers"

// Subresource is a subresource of an object.
type Subresource struct {
	Name, Kind string // kind of the request body
	Verbs      []string
}

// A goType contains the functions that depend on the Go type of the objects. The functions are nil
// for reviews.
type goType struct {
	// NewObject returns a new empty object.
	NewObject func() server.Object
	// copy returns a shallow copy.
	copy func(server.Object) server.Object
}

// newGoType returns the goType of objects with the Go type T.
func newGoType[T any, P interface {
	*T
	server.Object
}]() goType {
	return goType{
		NewObject: func() server.Object { return P(new(T)) },
		copy: func(o server.Object) server.Object {
			c := *(o.(P))
			return P(&c)
		},
	}
}

// GroupResource returns the group and the name of the resource.
func (d *Definition) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: d.Group, Resource: d.Name}
}

// GroupVersionKind returns the group, version and kind of the objects.
func (d *Definition) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind}
}

// ListType returns the kind and version of a list of the objects.
func (d *Definition) ListType() metav1.TypeMeta {
	return metav1.TypeMeta{Kind: d.Kind + "List", APIVersion: d.GroupVersionKind().GroupVersion().String()}
}

// HasSubresource reports whether the resource has a subresource.
func (d *Definition) HasSubresource(name string) bool {
	return slices.ContainsFunc(d.Subresources, func(s Subresource) bool { return s.Name == name })
}

// IsWatchable reports whether the resource can be watched.
func (d *Definition) IsWatchable() bool { return slices.Contains(d.Verbs, "watch") }

// IsInManifests reports whether the objects come from manifests.
func (d *Definition) IsInManifests() bool {
	return d.SelectObjects != nil || d.Name == "pods" && d.Measure == nil
}

// Key returns the key of an object in a namespace, which is ignored if the resource
// is not namespaced.
func (d *Definition) Key(namespace, name string) server.Key {
	if !d.Namespaced {
		namespace = ""
	}
	return server.Key{Namespace: namespace, Name: name}
}

// NotFound returns the API's error for an object that does not exist. If key.Name is the name of a
// pod in its manifest file, the error suggests the full name, which ends with the node's name.
func (d *Definition) NotFound(v *server.View, key server.Key) error {
	err := apierrors.NewNotFound(d.GroupResource(), key.Name)
	fullKey := server.Key{Namespace: key.Namespace, Name: key.Name + "-" + v.Node}
	if d.Name == "pods" && v.Pod(fullKey) != nil {
		err.ErrStatus.Message += fmt.Sprintf("; did you mean %q?", fullKey.Name)
	}
	return err
}

// Options select optional resources and verbs.
type Options struct {
	ServesMetrics bool // serve metrics.k8s.io
	IsWritable    bool // the API can create, change and delete objects
}

var (
	readVerbs    = []string{"get", "list", "watch"}
	metricsVerbs = []string{"get", "list"}
	writeVerbs   = []string{"create", "update", "patch", "delete", "deletecollection"}
	createVerbs  = []string{"create"}
	getVerbs     = []string{"get"}
	// proxyVerbs are the verbs of the subresource proxy, which serves the kubelet's API.
	proxyVerbs = []string{"create", "get", "update"}
	// streamVerbs are the verbs of subresources that open a stream.
	streamVerbs = []string{"create", "get"}
	updateVerbs = []string{"get", "patch", "update"}
)

// statusSubresource returns the subresource status. Reading it returns the whole object.
func statusSubresource(kind string) Subresource { return Subresource{"status", kind, getVerbs} }

// Definitions returns the resources of a node, in the order of discovery.
func Definitions(o Options) []*Definition {
	definitions := []*Definition{
		{Name: "configmaps", Kind: "ConfigMap", ShortNames: []string{"cm"}, Namespaced: true, goType: newGoType[v1.ConfigMap](),
			SelectObjects: func(o *server.Objects) []*server.ObjectView { return o.ConfigMaps }},
		{Name: "events", Kind: "Event", ShortNames: []string{"ev"}, Namespaced: true, goType: newGoType[v1.Event](), IsEvents: true, selectableFields: eventFields},
		{Name: "namespaces", Kind: "Namespace", ShortNames: []string{"ns"}, goType: newGoType[v1.Namespace](), Items: namespaceItems,
			selectableFields: namespaceFields, Subresources: []Subresource{statusSubresource("Namespace")}},
		{Name: "nodes", Kind: "Node", ShortNames: []string{"no"}, goType: newGoType[v1.Node](), Items: nodeItems, selectableFields: nodeFields,
			Subresources: []Subresource{{"proxy", "NodeProxyOptions", proxyVerbs}, statusSubresource("Node")}},
		{Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", ShortNames: []string{"pvc"}, Namespaced: true, goType: newGoType[v1.PersistentVolumeClaim](),
			SelectObjects: func(o *server.Objects) []*server.ObjectView { return o.Claims },
			Subresources:  []Subresource{statusSubresource("PersistentVolumeClaim")}},
		{Name: "persistentvolumes", Kind: "PersistentVolume", ShortNames: []string{"pv"}, goType: newGoType[v1.PersistentVolume](),
			SelectObjects: func(o *server.Objects) []*server.ObjectView { return o.Volumes },
			Subresources:  []Subresource{statusSubresource("PersistentVolume")}},
		{Name: "pods", Kind: "Pod", ShortNames: []string{"po"}, Categories: []string{"all"}, Namespaced: true, goType: newGoType[v1.Pod](),
			Items: podItems, selectableFields: podFields, creationTime: podStartTime, Subresources: podSubresources(o.IsWritable)},
		{Name: "secrets", Kind: "Secret", Namespaced: true, goType: newGoType[v1.Secret](), selectableFields: secretFields,
			SelectObjects: func(o *server.Objects) []*server.ObjectView { return o.Secrets }},
		{Group: certificates.GroupName, Name: "clustertrustbundles", Kind: "ClusterTrustBundle", goType: newGoType[certificates.ClusterTrustBundle](),
			SelectObjects: func(o *server.Objects) []*server.ObjectView { return o.TrustBundles }, selectableFields: trustBundleFields},
		{Group: storage.GroupName, Name: "csidrivers", Kind: "CSIDriver", goType: newGoType[storage.CSIDriver](),
			SelectObjects: func(o *server.Objects) []*server.ObjectView { return o.CSIDrivers }},
		{Group: "authentication.k8s.io", Name: "selfsubjectreviews", Kind: "SelfSubjectReview", Verbs: createVerbs},
		{Group: "authorization.k8s.io", Name: "selfsubjectaccessreviews", Kind: "SelfSubjectAccessReview", Verbs: createVerbs},
		{Group: "authorization.k8s.io", Name: "selfsubjectrulesreviews", Kind: "SelfSubjectRulesReview", Verbs: createVerbs},
	}
	if o.ServesMetrics {
		definitions = append(definitions, metricsDefinitions()...)
	}
	for _, d := range definitions {
		d.setDefaults()
		if o.IsWritable && d.IsInManifests() {
			d.Verbs = slices.Concat(readVerbs, writeVerbs)
		}
	}
	return definitions
}

func podSubresources(isWritable bool) []Subresource {
	subresources := []Subresource{
		{"attach", "PodAttachOptions", streamVerbs},
		{EphemeralContainers, "Pod", updateVerbs},
		{"exec", "PodExecOptions", streamVerbs},
		{"log", "Pod", getVerbs},
		{"portforward", "PodPortForwardOptions", streamVerbs},
		statusSubresource("Pod"),
	}
	if isWritable {
		subresources = append(subresources, Subresource{"resize", "Pod", updateVerbs})
	}
	return subresources
}

// setDefaults sets the default values of fields that are not set.
func (d *Definition) setDefaults() {
	if d.Version == "" {
		d.Version = "v1"
	}
	if d.Verbs == nil {
		d.Verbs = readVerbs
	}
	if d.Singular == "" {
		d.Singular = strings.ToLower(d.Kind)
	}
	if d.SelectObjects != nil {
		d.Items = newItemsFunc(d.SelectObjects)
	}
	if d.selectableFields == nil {
		d.selectableFields = func(server.Object) fields.Set { return nil }
	}
}
