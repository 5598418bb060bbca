package manifest

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
)

// RuntimeHandler returns the runtime handler for a pod of a manifest: the one that classes
// contains for its RuntimeClass, or else the name of the class; "" is the default handler.
func RuntimeHandler(spec *v1.PodSpec, classes map[string]string) string {
	if spec.RuntimeClassName == nil {
		return ""
	}
	return cmp.Or(classes[*spec.RuntimeClassName], *spec.RuntimeClassName)
}

// RuntimeHandler returns the runtime handler for any pod, including those of a cluster.
func (p *Pod) RuntimeHandler(classes map[string]string) string {
	if p.Handler != nil {
		return *p.Handler
	}
	return RuntimeHandler(&p.Spec.Spec, classes)
}
