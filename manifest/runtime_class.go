package manifest

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
)

// RuntimeHandler is the runtime's handler for a pod: the one that classes has
// for its class, or else the one of the same name; "" is the default one. It is
// for pods of manifests, which no cluster has RuntimeClasses for.
func RuntimeHandler(spec *v1.PodSpec, classes map[string]string) string {
	if spec.RuntimeClassName == nil {
		return ""
	}
	return cmp.Or(classes[*spec.RuntimeClassName], *spec.RuntimeClassName)
}

// RuntimeHandler is the runtime's handler for a pod, of a cluster too.
func (p *Pod) RuntimeHandler(classes map[string]string) string {
	if p.Handler != nil {
		return *p.Handler
	}
	return RuntimeHandler(&p.Spec.Spec, classes)
}

// handledBy is p with the handler of its RuntimeClass, once the cluster has told.
// before is what came of it last, or of another version, or nil.
func (p *Pod) handledBy(c *Cluster, before *Pod) *Pod {
	class := p.Spec.Spec.RuntimeClassName
	if c == nil || class == nil {
		return p
	}
	handler, known := c.Handlers[*class]
	if !known {
		return p
	}
	if before != nil && before.Spec == p.Spec && before.Handler != nil && *before.Handler == handler {
		return before
	}
	v := *p
	v.Handler = &handler
	return &v
}
