// Package mirror creates and recognizes mirror pods. A mirror pod represents a static pod in the API server.
//
// A mirror pod is created without the fields that the API server rejects. These are references to other
// objects, priority and overhead. An annotation names the omitted references. The API server sets priority
// and overhead from its own PriorityClasses and RuntimeClasses. The config.hash of the mirror pod is that
// of the static pod.
package mirror

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
)

// IsMirror reports whether p is a mirror pod. A mirror pod represents a static pod, which comes from
// a file or URL, in the API server. The mirror pod has the name of the static pod. Its annotations
// config.hash and config.mirror contain the UID of the static pod. Changes of the mirror pod do not
// affect the static pod.
func IsMirror(p *v1.Pod) bool {
	_, ok := p.Annotations[manifest.AnnotationConfigMirror]
	return ok
}

// IsStatic reports whether a pod comes from a file or URL.
func IsStatic(p *v1.Pod) bool {
	source := p.Annotations[manifest.AnnotationConfigSource]
	return p.Annotations[manifest.AnnotationConfigHash] != "" && (source == manifest.KindFile || source == manifest.KindURL)
}

// IsMirrorOf reports whether mirror is an up-to-date mirror pod of static and is owned by node. If
// node is nil, IsMirrorOf does not check the owner.
func IsMirrorOf(mirror, static *v1.Pod, node *v1.Node) bool {
	if mirror.DeletionTimestamp != nil || mirror.Annotations[manifest.AnnotationConfigMirror] != static.Annotations[manifest.AnnotationConfigHash] {
		return false
	}
	owner := metav1.GetControllerOf(mirror)
	return node == nil || owner != nil && owner.UID == node.UID
}

// New returns a mirror pod of static. Its owner is the Node, as NodeRestriction
// requires. It omits the fields that NodeRestriction rejects; annotationLocalRefs names
// omitted references.
func New(static *v1.Pod, node *v1.Node) *v1.Pod {
	m := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: static.Namespace, Name: static.Name, Labels: static.Labels, Annotations: maps.Clone(static.Annotations),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true)}},
		},
		Spec: *static.Spec.DeepCopy(),
	}
	m.Annotations[manifest.AnnotationConfigMirror] = static.Annotations[manifest.AnnotationConfigHash]
	// The API server sets these fields from its PriorityClasses and RuntimeClasses and rejects
	// other values.
	m.Spec.Priority, m.Spec.PreemptionPolicy, m.Spec.Overhead = nil, nil, nil
	m.Spec.EphemeralContainers = nil // new pods must not have ephemeral containers
	if removed := removeRefs(m); removed != "" {
		m.Annotations[annotationLocalRefs] = removed
	}
	return m
}
