package manifest

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
)

// RuntimeClassHandler returns the runtime handler of a pod without a cluster. classes maps
// names of RuntimeClasses to handlers. If classes does not contain the RuntimeClass of the pod,
// the handler is the name of the RuntimeClass. A pod without a RuntimeClass has the default
// handler, "".
func RuntimeClassHandler(spec *v1.PodSpec, classes map[string]string) string {
	if spec.RuntimeClassName == nil {
		return ""
	}
	return cmp.Or(classes[*spec.RuntimeClassName], *spec.RuntimeClassName)
}

// RuntimeHandler returns the runtime handler of p: Handler if it is set, otherwise
// RuntimeClassHandler.
func (p *Pod) RuntimeHandler(classes map[string]string) string {
	if p.ServerRuntimeHandler != nil {
		return *p.ServerRuntimeHandler
	}
	return RuntimeClassHandler(&p.Object.Spec, classes)
}
