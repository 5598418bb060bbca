package kube

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

func lower(kind string) string { return strings.ToLower(kind) }

func pods(v *server.View) []item {
	all := make([]item, 0, len(v.Pods))
	for _, p := range v.Pods {
		all = append(all, item{p.Key(), p.Pod})
	}
	return all
}

// podSince: a pod of a file was created by nobody, and is as old as its start.
func podSince(o server.Object) metav1.Time {
	if start := o.(*v1.Pod).Status.StartTime; start != nil {
		return *start
	}
	return metav1.Time{}
}

func nodes(v *server.View) []item {
	if v.Machine == nil {
		return nil
	}
	return []item{{server.Key{Name: v.Machine.Name}, v.Machine}}
}

// objects are those of one kind beside the pods.
func objects(of func(*server.Objects) []*server.ObjectView) func(*server.View) []item {
	return func(v *server.View) []item {
		if v.Objects == nil {
			return nil
		}
		var all []item
		for _, o := range of(v.Objects()) {
			all = append(all, item{server.Key{Namespace: o.Object.GetNamespace(), Name: o.Object.GetName()}, o.Object})
		}
		return all
	}
}

// namespaces are those that something is in, and default. Nobody made them, so
// they are as old as the node.
func namespaces(v *server.View) []item {
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
	all := []item{}
	for _, name := range slices.Compact(names) {
		all = append(all, item{server.Key{Name: name}, namespace(v, name)})
	}
	return all
}

func namespace(v *server.View, name string) *v1.Namespace {
	n := &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: server.UIDOf(v.Node, "Namespace", name), Labels: map[string]string{v1.LabelMetadataName: name}},
		Status:     v1.NamespaceStatus{Phase: v1.NamespaceActive},
	}
	if v.Machine != nil {
		n.CreationTimestamp = v.Machine.CreationTimestamp
	}
	return n
}
