package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Annotations of static pods, which kubeadm and node agents read.
const (
	AnnotationConfigHash   = "kubernetes.io/config.hash"
	AnnotationConfigSource = "kubernetes.io/config.source"
	AnnotationConfigSeen   = "kubernetes.io/config.seen"
	AnnotationConfigMirror = "kubernetes.io/config.mirror"
)

// ManifestKey returns Key without NameSuffix: the namespace and name in the manifest.
func (p *Pod) ManifestKey() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Key.Namespace, Name: strings.TrimSuffix(p.Key.Name, p.NameSuffix)}
}
