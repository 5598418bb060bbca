package openapi

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var everything = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

func corev1(kind string) schema.GroupVersionKind {
	return v1.SchemeGroupVersion.WithKind(kind)
}

// served returns resources like those of a node.
func served() []Resource {
	reads := []string{"get", "list", "watch"}
	return []Resource{
		{
			Kind: corev1("Pod"), Object: &v1.Pod{}, Plural: "pods", Namespaced: true, Verbs: everything,
			Subresources: []Subresource{
				{Name: "status", Kind: corev1("Pod"), Object: &v1.Pod{}, Verbs: []string{"get", "update", "patch"}},
				{Name: "log", Kind: corev1("Pod"), Options: &v1.PodLogOptions{}, Verbs: []string{"get"}},
				{Name: "exec", Kind: corev1("PodExecOptions"), Options: &v1.PodExecOptions{}, Verbs: []string{"get", "create"}},
			},
		},
		{Kind: corev1("Node"), Object: &v1.Node{}, Plural: "nodes", Verbs: reads},
		{Kind: corev1("Namespace"), Object: &v1.Namespace{}, Plural: "namespaces", Verbs: reads},
		{Kind: corev1("Event"), Object: &v1.Event{}, Plural: "events", Namespaced: true, Verbs: reads},
		{Kind: corev1("ConfigMap"), Object: &v1.ConfigMap{}, Plural: "configmaps", Namespaced: true, Verbs: reads},
		{Kind: corev1("Secret"), Object: &v1.Secret{}, Plural: "secrets", Namespaced: true, Verbs: reads},
		{Kind: corev1("PersistentVolume"), Object: &v1.PersistentVolume{}, Plural: "persistentvolumes", Verbs: reads},
		{Kind: corev1("PersistentVolumeClaim"), Object: &v1.PersistentVolumeClaim{}, Plural: "persistentvolumeclaims", Namespaced: true, Verbs: reads},
		{
			Kind:   coordinationv1.SchemeGroupVersion.WithKind("Lease"),
			Object: &coordinationv1.Lease{}, Plural: "leases", Namespaced: true, Verbs: reads,
		},
	}
}
