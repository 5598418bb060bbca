package manifest

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Use is one place in a pod that reads an object beside it.
type Use struct {
	Object ObjectRef
	Role   Role
	// Keys must be there, beside the object; often none in particular.
	Keys []string
	// Optional says that the pod starts without the object or its keys.
	Optional bool
	// Field is where the object is named ("spec.volumes[0].configMap.name").
	Field string
	// Token is what a token is asked for with; nil for other objects.
	Token *v1.ServiceAccountTokenProjection
	// Volume is what is attached, as a Node's status names it; "" for what is no
	// VolumeAttachment.
	Volume v1.UniqueVolumeName
}

// Role is what an object is read for.
type Role int

// A mounted object's files follow it while the pod runs, variables are read
// when their container starts, credentials when an image is pulled; what a claim
// is bound to is mounted. What an ephemeral container reads keeps nothing else of
// the pod waiting. A RuntimeClass says what the sandbox is made by. What a driver is
// told is for it alone: nothing else of the pod may read it.
const (
	ForFiles Role = iota
	ForEnv
	ForPull
	ForMount
	ForEphemeral
	ForSandbox
	ForDriver
)

// Uses are the places where a pod reads objects beside it, in the order of its
// fields.
func Uses(p *Pod) []Use {
	if p == nil {
		return nil
	}
	if p.Origin.Kind == KindAPI {
		return ClusterUses(p.Spec)
	}
	return (&uses{namespace: p.Key.Namespace}).of(&p.Spec.Spec)
}

// ClusterUses are those of a pod of an API server, which looks more up than one of
// a manifest.
func ClusterUses(pod *v1.Pod) []Use {
	u := &uses{namespace: pod.Namespace, pod: pod}
	if class := pod.Spec.RuntimeClassName; class != nil && *class != "" {
		u.all = append(u.all, Use{Object: ObjectRef{kindClass, types.NamespacedName{Name: *class}}, Role: ForSandbox, Field: "spec.runtimeClassName"})
	}
	return u.of(&pod.Spec)
}

func (u *uses) of(spec *v1.PodSpec) []Use {
	for i := range spec.Volumes {
		u.volume(&spec.Volumes[i], fmt.Sprintf("spec.volumes[%d]", i))
	}
	for i, ref := range spec.ImagePullSecrets {
		if ref.Name == "" {
			continue
		}
		u.add("Secret", ref.Name, ForPull, ptrTo(true), fmt.Sprintf("spec.imagePullSecrets[%d].name", i))
	}
	for i := range spec.InitContainers {
		u.container(&spec.InitContainers[i], ForEnv, fmt.Sprintf("spec.initContainers[%d]", i))
	}
	for i := range spec.Containers {
		u.container(&spec.Containers[i], ForEnv, fmt.Sprintf("spec.containers[%d]", i))
	}
	for i := range spec.EphemeralContainers {
		c := (*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)
		u.container(c, ForEphemeral, fmt.Sprintf("spec.ephemeralContainers[%d]", i))
	}
	return u.all
}

type uses struct {
	namespace string
	pod       *v1.Pod // of an API server; nil for others
	all       []Use
}

func (u *uses) add(kind, name string, role Role, optional *bool, field string, keys ...string) {
	if name == "" {
		return
	}
	u.all = append(u.all, Use{
		Object: ObjectRef{kind, types.NamespacedName{Namespace: u.namespace, Name: name}},
		Role:   role, Keys: keys, Optional: isTrue(optional), Field: field,
	})
}

func (u *uses) volume(v *v1.Volume, at string) {
	switch {
	case v.PersistentVolumeClaim != nil:
		u.add(kindClaim, v.PersistentVolumeClaim.ClaimName, ForMount, nil, at+".persistentVolumeClaim.claimName")
	case v.Ephemeral != nil && u.pod != nil: // else it is a directory
		u.add(kindClaim, EphemeralClaim(u.pod, v.Name), ForMount, nil, at+".ephemeral")
	case v.ConfigMap != nil:
		u.add("ConfigMap", v.ConfigMap.Name, ForFiles, v.ConfigMap.Optional, at+".configMap.name", keysOf(v.ConfigMap.Items)...)
	case v.Secret != nil:
		u.add("Secret", v.Secret.SecretName, ForFiles, v.Secret.Optional, at+".secret.secretName", keysOf(v.Secret.Items)...)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			s, at := &v.Projected.Sources[i], fmt.Sprintf("%s.projected.sources[%d]", at, i)
			if s.ConfigMap != nil {
				u.add("ConfigMap", s.ConfigMap.Name, ForFiles, s.ConfigMap.Optional, at+".configMap.name", keysOf(s.ConfigMap.Items)...)
			}
			if s.Secret != nil {
				u.add("Secret", s.Secret.Name, ForFiles, s.Secret.Optional, at+".secret.name", keysOf(s.Secret.Items)...)
			}
			if t := s.ServiceAccountToken; t != nil && u.pod != nil {
				u.all = append(u.all, Use{Object: TokenOf(u.pod, t), Role: ForFiles, Field: at + ".serviceAccountToken", Token: t})
			}
		}
	}
}

func (u *uses) container(c *v1.Container, role Role, at string) {
	for i := range c.EnvFrom {
		e, at := &c.EnvFrom[i], fmt.Sprintf("%s.envFrom[%d]", at, i)
		if e.ConfigMapRef != nil {
			u.add("ConfigMap", e.ConfigMapRef.Name, role, e.ConfigMapRef.Optional, at+".configMapRef.name")
		}
		if e.SecretRef != nil {
			u.add("Secret", e.SecretRef.Name, role, e.SecretRef.Optional, at+".secretRef.name")
		}
	}
	for i := range c.Env {
		from, at := c.Env[i].ValueFrom, fmt.Sprintf("%s.env[%d].valueFrom", at, i)
		if from == nil {
			continue
		}
		if ref := from.ConfigMapKeyRef; ref != nil {
			u.add("ConfigMap", ref.Name, role, ref.Optional, at+".configMapKeyRef.name", ref.Key)
		}
		if ref := from.SecretKeyRef; ref != nil {
			u.add("Secret", ref.Name, role, ref.Optional, at+".secretKeyRef.name", ref.Key)
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

func isTrue(b *bool) bool { return b != nil && *b }

func ptrTo[T any](v T) *T { return &v }
