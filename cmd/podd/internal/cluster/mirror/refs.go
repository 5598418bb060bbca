package mirror

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// annotationLocalRefs is an annotation of a mirror pod. It names the objects that the static pod
// refers to and that the mirror pod cannot refer to, because they are not in the cluster. The
// value is a sorted list, such as "ConfigMap/conf,Secret/cred".
const annotationLocalRefs = "podd/local-refs"

// removedRefs collects the references that were removed from a mirror pod.
type removedRefs struct {
	names   map[string]bool // such as "ConfigMap/conf"
	volumes map[string]bool // names of removed volumes
}

// add records a reference to an object. It ignores an empty name.
func (r *removedRefs) add(kind, name string) {
	if name != "" {
		r.names[kind+"/"+name] = true
	}
}

// removeRefs removes all references to other API objects from p and returns the value for
// annotationLocalRefs. If an environment variable or volume consists only of references, removeRefs
// removes it entirely.
func removeRefs(p *v1.Pod) string {
	r := &removedRefs{names: map[string]bool{}, volumes: map[string]bool{}}
	s := &p.Spec
	if s.ServiceAccountName != "" {
		r.add("ServiceAccount", s.ServiceAccountName)
		s.ServiceAccountName, s.DeprecatedServiceAccount = "", ""
	}
	for _, secret := range s.ImagePullSecrets {
		r.add("Secret", secret.Name)
	}
	s.ImagePullSecrets = nil
	s.Volumes = slices.DeleteFunc(s.Volumes, func(v v1.Volume) bool {
		r.volumes[v.Name] = r.mustRemoveVolume(p, &v)
		return r.volumes[v.Name]
	})
	for i := range s.InitContainers {
		r.removeFrom(&s.InitContainers[i])
	}
	for i := range s.Containers {
		r.removeFrom(&s.Containers[i])
	}
	return strings.Join(slices.Sorted(maps.Keys(r.names)), ",")
}

// mustRemoveVolume reports whether the caller must remove a volume, because the volume consists of
// references only. If a projected volume also has other sources, mustRemoveVolume removes the
// references and returns false.
func (r *removedRefs) mustRemoveVolume(p *v1.Pod, v *v1.Volume) bool {
	switch {
	case v.ConfigMap != nil:
		r.add("ConfigMap", v.ConfigMap.Name)
	case v.Secret != nil:
		r.add("Secret", v.Secret.SecretName)
	case v.PersistentVolumeClaim != nil:
		r.add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
	case v.Ephemeral != nil:
		r.add("PersistentVolumeClaim", p.Name+"-"+v.Name)
	case v.Projected != nil:
		n := len(v.Projected.Sources)
		v.Projected.Sources = slices.DeleteFunc(v.Projected.Sources, r.mustRemoveProjection)
		return len(v.Projected.Sources) == 0 && n > 0
	default:
		return false
	}
	return true
}

// mustRemoveProjection reports whether a source of a projected volume must be removed, because it
// is a reference.
func (r *removedRefs) mustRemoveProjection(s v1.VolumeProjection) bool {
	switch {
	case s.ConfigMap != nil:
		r.add("ConfigMap", s.ConfigMap.Name)
	case s.Secret != nil:
		r.add("Secret", s.Secret.Name)
	case s.ClusterTrustBundle != nil:
		r.add("ClusterTrustBundle", cmp.Or(ptr.Deref(s.ClusterTrustBundle.Name, ""), ptr.Deref(s.ClusterTrustBundle.SignerName, "")))
	default:
		return false
	}
	return true
}

// removeFrom removes the references from a container.
func (r *removedRefs) removeFrom(c *v1.Container) {
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return r.volumes[m.Name] })
	c.EnvFrom = slices.DeleteFunc(c.EnvFrom, func(e v1.EnvFromSource) bool {
		if e.ConfigMapRef != nil {
			r.add("ConfigMap", e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			r.add("Secret", e.SecretRef.Name)
		}
		return e.ConfigMapRef != nil || e.SecretRef != nil
	})
	c.Env = slices.DeleteFunc(c.Env, func(e v1.EnvVar) bool {
		if e.ValueFrom == nil {
			return false
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			r.add("ConfigMap", ref.Name)
			return true
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			r.add("Secret", ref.Name)
			return true
		}
		return false
	})
}
