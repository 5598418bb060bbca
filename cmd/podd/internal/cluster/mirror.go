package cluster

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
)

// A mirror is the object by which a cluster knows a static pod, one of a file or a
// URL: it has its name and, as annotations, its UID, as config.hash and config.mirror.
// Whatever is done to it, the pod runs on.

func isMirror(p *v1.Pod) bool {
	_, is := p.Annotations[manifest.AnnotationConfigMirror]
	return is
}

// Mirrors is how many the cluster was last seen to have for this node.
func (c *Cluster) Mirrors() int {
	pods, _ := c.pods.get()
	n := 0
	for _, p := range pods.items {
		if isMirror(p) {
			n++
		}
	}
	return n
}

// isStatic says that a pod is one of a file or a URL.
func isStatic(p *v1.Pod) bool {
	source := p.Annotations[manifest.AnnotationConfigSource]
	return p.Annotations[manifest.AnnotationConfigHash] != "" && (source == manifest.KindFile || source == manifest.KindURL)
}

// mirrors says that an object is the mirror of a static pod, to be kept. Nobody
// knows the owner while node is nil.
func mirrors(mirror, static *v1.Pod, node *v1.Node) bool {
	if mirror.DeletionTimestamp != nil || mirror.Annotations[manifest.AnnotationConfigMirror] != static.Annotations[manifest.AnnotationConfigHash] {
		return false
	}
	owner := metav1.GetControllerOf(mirror)
	return node == nil || owner != nil && owner.UID == node.UID
}

// mirrorOf makes the mirror of a static pod, which the node owns: no API server
// takes another from it (NodeRestriction). What it refuses in a mirror is left out,
// and named where users would miss it.
func mirrorOf(static *v1.Pod, node *v1.Node) *v1.Pod {
	m := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: static.Namespace, Name: static.Name, Labels: static.Labels, Annotations: maps.Clone(static.Annotations),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true)}},
		},
		Spec: *static.Spec.DeepCopy(),
	}
	m.Annotations[manifest.AnnotationConfigMirror] = static.Annotations[manifest.AnnotationConfigHash]
	// The API server fills these in from the cluster's classes, and takes no others.
	m.Spec.Priority, m.Spec.PreemptionPolicy, m.Spec.Overhead = nil, nil, nil
	m.Spec.EphemeralContainers = nil // it takes none with a new pod
	if refs := withoutRefs(m); refs != "" {
		m.Annotations[AnnotationLocalRefs] = refs
	}
	return m
}
