package resource

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// Item is an object of podd's published state, without kind and resourceVersion. It is
// immutable, including everything that it points to.
type Item struct {
	Key    server.Key
	Object server.Object
}

func podItems(v *server.View) []Item {
	items := make([]Item, 0, len(v.Pods))
	for _, p := range v.Pods {
		items = append(items, Item{p.Key(), p.Pod})
	}
	return items
}

// podStartTime returns the start time of a pod. It is used as the creation timestamp, which a
// pod from a file does not have.
func podStartTime(o server.Object) metav1.Time {
	if start := o.(*v1.Pod).Status.StartTime; start != nil {
		return *start
	}
	return metav1.Time{}
}

func nodeItems(v *server.View) []Item {
	if v.NodeObject == nil {
		return nil
	}
	return []Item{{server.Key{Name: v.NodeObject.Name}, v.NodeObject}}
}

// newItemsFunc returns a function that returns the Items of a View. The function converts the
// objects that selectObjects returns for the View.
func newItemsFunc(selectObjects func(*server.Objects) []*server.ObjectView) func(*server.View) []Item {
	return func(v *server.View) []Item {
		if v.Objects == nil {
			return nil
		}
		var items []Item
		for _, o := range selectObjects(v.Objects()) {
			items = append(items, Item{server.Key{Namespace: o.Object.GetNamespace(), Name: o.Object.GetName()}, o.Object})
		}
		return items
	}
}

// namespaceItems returns the namespace default and all namespaces that contain objects. Their
// creation time is the creation time of the node.
func namespaceItems(v *server.View) []Item {
	names := []string{metav1.NamespaceDefault}
	for _, p := range v.Pods {
		names = append(names, p.Pod.Namespace)
	}
	if v.Objects != nil {
		o := v.Objects()
		for _, o := range slices.Concat(o.ConfigMaps, o.Secrets, o.Claims) {
			names = append(names, o.Object.GetNamespace())
		}
	}
	slices.Sort(names)
	items := []Item{}
	for _, name := range slices.Compact(names) {
		items = append(items, Item{server.Key{Name: name}, newNamespace(v, name)})
	}
	return items
}

func newNamespace(v *server.View, name string) *v1.Namespace {
	n := &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: server.DeriveUID(v.Node, "Namespace", name), Labels: map[string]string{v1.LabelMetadataName: name}},
		Status:     v1.NamespaceStatus{Phase: v1.NamespaceActive},
	}
	if v.NodeObject != nil {
		n.CreationTimestamp = v.NodeObject.CreationTimestamp
	}
	return n
}
