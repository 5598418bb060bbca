package cluster

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// AnnotationLocalRefs of a mirror pod names the objects that the static pod refers to and
// the mirror pod does not, because they are not in the cluster:
// "ConfigMap/conf,Secret/cred", sorted.
const AnnotationLocalRefs = "podd/local-refs"

// removedRefs collects the references that were removed from a mirror pod.
type removedRefs struct {
	names map[string]bool
	gone  map[string]bool // names of removed volumes
}

func (r *removedRefs) note(kind, name string) {
	if name != "" {
		r.names[kind+"/"+name] = true
	}
}

// withoutRefs removes all references to other API objects from a pod and returns their
// names. A variable or volume that consists of one is removed as a whole.
func withoutRefs(p *v1.Pod) string {
	r := &removedRefs{names: map[string]bool{}, gone: map[string]bool{}}
	s := &p.Spec
	if s.ServiceAccountName != "" {
		r.note("ServiceAccount", s.ServiceAccountName)
		s.ServiceAccountName, s.DeprecatedServiceAccount = "", ""
	}
	for _, secret := range s.ImagePullSecrets {
		r.note("Secret", secret.Name)
	}
	s.ImagePullSecrets = nil
	s.Volumes = slices.DeleteFunc(s.Volumes, func(v v1.Volume) bool {
		r.gone[v.Name] = r.volume(p, &v)
		return r.gone[v.Name]
	})
	for i := range s.InitContainers {
		r.container(&s.InitContainers[i])
	}
	for i := range s.Containers {
		r.container(&s.Containers[i])
	}
	return strings.Join(slices.Sorted(maps.Keys(r.names)), ",")
}

// volume reports whether a volume is removed.
func (r *removedRefs) volume(p *v1.Pod, v *v1.Volume) bool {
	switch {
	case v.ConfigMap != nil:
		r.note("ConfigMap", v.ConfigMap.Name)
	case v.Secret != nil:
		r.note("Secret", v.Secret.SecretName)
	case v.PersistentVolumeClaim != nil:
		r.note("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
	case v.Ephemeral != nil:
		r.note("PersistentVolumeClaim", p.Name+"-"+v.Name)
	case v.Projected != nil:
		n := len(v.Projected.Sources)
		v.Projected.Sources = slices.DeleteFunc(v.Projected.Sources, r.projection)
		return len(v.Projected.Sources) == 0 && n > 0
	default:
		return false
	}
	return true
}

// projection reports whether a source of a volume is removed. Manifests with other
// sources are rejected.
func (r *removedRefs) projection(s v1.VolumeProjection) bool {
	switch {
	case s.ConfigMap != nil:
		r.note("ConfigMap", s.ConfigMap.Name)
	case s.Secret != nil:
		r.note("Secret", s.Secret.Name)
	default:
		return false
	}
	return true
}

func (r *removedRefs) container(c *v1.Container) {
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return r.gone[m.Name] })
	c.EnvFrom = slices.DeleteFunc(c.EnvFrom, func(e v1.EnvFromSource) bool {
		if e.ConfigMapRef != nil {
			r.note("ConfigMap", e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			r.note("Secret", e.SecretRef.Name)
		}
		return e.ConfigMapRef != nil || e.SecretRef != nil
	})
	c.Env = slices.DeleteFunc(c.Env, func(e v1.EnvVar) bool {
		if e.ValueFrom == nil {
			return false
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			r.note("ConfigMap", ref.Name)
			return true
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			r.note("Secret", ref.Name)
			return true
		}
		return false
	})
}
