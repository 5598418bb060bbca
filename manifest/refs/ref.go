package refs

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"podd/manifest"
)

// A Ref is a reference from a pod to an object.
type Ref struct {
	Object manifest.ObjectRef
	role   role
	// Keys lists the keys that the object must contain. It may be empty.
	Keys []string
	// Optional reports whether the pod starts even if the object or a key is missing.
	Optional bool
	// FieldPath is the path of the reference ("spec.volumes[0].configMap.name").
	FieldPath string
	// Token contains the parameters of a token request; nil for other objects.
	Token *v1.ServiceAccountTokenProjection
	// TrustBundle is the clusterTrustBundle source of a projected volume; nil for other objects.
	TrustBundle *v1.ClusterTrustBundleProjection
	// PodCertificate contains the parameters of a PodCertificateRequest; nil for other objects.
	PodCertificate *v1.PodCertificateProjection
	// PersistentVolume is the name of the PersistentVolume that contains the reference; "" if the
	// pod contains it.
	PersistentVolume string
	// Volume is the name of the attached volume in the status of a Node; "" if the object is not
	// the attachment of a volume.
	Volume v1.UniqueVolumeName
}

// A role is the purpose for which an object is read.
type role int

const (
	forFiles     role = iota // files in a volume, which are updated while the pod runs
	forEnv                   // variables, which are read when their container starts
	forPull                  // credentials for image pulls
	forMount                 // a claim for a volume that is mounted
	forEphemeral             // variables of an ephemeral container; no other container waits for them
	forSandbox               // a RuntimeClass, which determines the handler of the sandbox
	forDriver                // parameters of calls to a CSI driver, attachments, or credentials of an iSCSI disk
)

// List returns the references of a pod, in the order of its fields.
func List(p *manifest.Pod) []Ref {
	if p == nil {
		return nil
	}
	if p.Traits.HasRefsFromServer {
		return ListClusterPod(p.Object)
	}
	return (&lister{namespace: p.Key.Namespace}).list(&p.Object.Spec)
}

// ListClusterPod returns the references of a pod of an API server. In addition to the references of
// a pod in a manifest, they include tokens, the RuntimeClass, and the claims of ephemeral
// volumes.
func ListClusterPod(pod *v1.Pod) []Ref {
	l := &lister{namespace: pod.Namespace, pod: pod}
	if class := pod.Spec.RuntimeClassName; class != nil && *class != "" {
		l.refs = append(l.refs, Ref{Object: manifest.ObjectRef{Kind: manifest.RuntimeClassKind, NamespacedName: types.NamespacedName{Name: *class}}, role: forSandbox, FieldPath: "spec.runtimeClassName"})
	}
	return l.list(&pod.Spec)
}

func (l *lister) list(spec *v1.PodSpec) []Ref {
	for i := range spec.Volumes {
		l.addVolume(&spec.Volumes[i], fmt.Sprintf("spec.volumes[%d]", i))
	}
	for i, ref := range spec.ImagePullSecrets {
		if ref.Name == "" {
			continue
		}
		l.add(manifest.SecretKind, ref.Name, forPull, new(true), fmt.Sprintf("spec.imagePullSecrets[%d].name", i))
	}
	for i := range spec.InitContainers {
		l.addContainer(&spec.InitContainers[i], forEnv, fmt.Sprintf("spec.initContainers[%d]", i))
	}
	for i := range spec.Containers {
		l.addContainer(&spec.Containers[i], forEnv, fmt.Sprintf("spec.containers[%d]", i))
	}
	for i := range spec.EphemeralContainers {
		c := (*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)
		l.addContainer(c, forEphemeral, fmt.Sprintf("spec.ephemeralContainers[%d]", i))
	}
	return l.refs
}

type lister struct {
	namespace string
	pod       *v1.Pod // the pod, if it comes from an API server; otherwise nil
	refs      []Ref
}

func (l *lister) add(kind, name string, role role, optional *bool, field string, keys ...string) {
	if name == "" {
		return
	}
	l.refs = append(l.refs, Ref{
		Object: manifest.ObjectRef{Kind: kind, NamespacedName: types.NamespacedName{Namespace: l.namespace, Name: name}},
		role:   role, Keys: keys, Optional: ptr.Deref(optional, false), FieldPath: field,
	})
}

func (l *lister) addVolume(v *v1.Volume, at string) {
	switch {
	case v.PersistentVolumeClaim != nil:
		l.add(manifest.ClaimKind, v.PersistentVolumeClaim.ClaimName, forMount, nil, at+".persistentVolumeClaim.claimName")
	case v.Ephemeral != nil && l.pod != nil: // for a pod in a manifest, l.pod is nil, because its ephemeral volumes have no claim
		l.add(manifest.ClaimKind, EphemeralClaimName(l.pod, v.Name), forMount, nil, at+".ephemeral")
	case v.ConfigMap != nil:
		l.add(manifest.ConfigMapKind, v.ConfigMap.Name, forFiles, v.ConfigMap.Optional, at+".configMap.name", keysOf(v.ConfigMap.Items)...)
	case v.Secret != nil:
		l.add(manifest.SecretKind, v.Secret.SecretName, forFiles, v.Secret.Optional, at+".secret.secretName", keysOf(v.Secret.Items)...)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			s, at := &v.Projected.Sources[i], fmt.Sprintf("%s.projected.sources[%d]", at, i)
			if s.ConfigMap != nil {
				l.add(manifest.ConfigMapKind, s.ConfigMap.Name, forFiles, s.ConfigMap.Optional, at+".configMap.name", keysOf(s.ConfigMap.Items)...)
			}
			if s.Secret != nil {
				l.add(manifest.SecretKind, s.Secret.Name, forFiles, s.Secret.Optional, at+".secret.name", keysOf(s.Secret.Items)...)
			}
			if b := s.ClusterTrustBundle; b != nil {
				l.refs = append(l.refs, Ref{Object: TrustBundleRef(b), role: forFiles, Optional: ptr.Deref(b.Optional, false), FieldPath: at + ".clusterTrustBundle", TrustBundle: b})
			}
			if c := s.PodCertificate; c != nil && l.pod != nil {
				l.refs = append(l.refs, Ref{Object: PodCertificateRef(l.pod, v.Name, i), role: forFiles, FieldPath: at + ".podCertificate", PodCertificate: c})
			}
			if t := s.ServiceAccountToken; t != nil && l.pod != nil {
				l.refs = append(l.refs, Ref{Object: TokenRef(l.pod, t), role: forFiles, FieldPath: at + ".serviceAccountToken", Token: t})
			}
		}
	}
}

func (l *lister) addContainer(c *v1.Container, role role, at string) {
	for i := range c.EnvFrom {
		e, at := &c.EnvFrom[i], fmt.Sprintf("%s.envFrom[%d]", at, i)
		if e.ConfigMapRef != nil {
			l.add(manifest.ConfigMapKind, e.ConfigMapRef.Name, role, e.ConfigMapRef.Optional, at+".configMapRef.name")
		}
		if e.SecretRef != nil {
			l.add(manifest.SecretKind, e.SecretRef.Name, role, e.SecretRef.Optional, at+".secretRef.name")
		}
	}
	for i := range c.Env {
		source, at := c.Env[i].ValueFrom, fmt.Sprintf("%s.env[%d].valueFrom", at, i)
		if source == nil {
			continue
		}
		if ref := source.ConfigMapKeyRef; ref != nil {
			l.add(manifest.ConfigMapKind, ref.Name, role, ref.Optional, at+".configMapKeyRef.name", ref.Key)
		}
		if ref := source.SecretKeyRef; ref != nil {
			l.add(manifest.SecretKind, ref.Name, role, ref.Optional, at+".secretKeyRef.name", ref.Key)
		}
	}
}

func keysOf(items []v1.KeyToPath) []string {
	var keys []string
	for _, item := range items {
		keys = append(keys, item.Key)
	}
	return keys
}
