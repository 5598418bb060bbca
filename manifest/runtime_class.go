package manifest

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
)

// RuntimeClassHandler returns the runtime handler of a pod. It must be called only for a pod whose
// RuntimeClass was not read from an API server. classes maps names of RuntimeClasses to handlers. If
// classes does not contain the RuntimeClass of the pod, the handler is the name of the RuntimeClass.
// A pod without a RuntimeClass has the default handler, "".
func RuntimeClassHandler(spec *v1.PodSpec, classes map[string]string) string {
	if spec.RuntimeClassName == nil {
		return ""
	}
	return cmp.Or(classes[*spec.RuntimeClassName], *spec.RuntimeClassName)
}

// RuntimeHandler returns the runtime handler of p. It is ServerRuntimeHandler if the API server has
// returned the handler. Otherwise it is the result of RuntimeClassHandler.
func (p *Pod) RuntimeHandler(classes map[string]string) string {
	if p.ServerRuntimeHandler != nil {
		return *p.ServerRuntimeHandler
	}
	return RuntimeClassHandler(&p.Object.Spec, classes)
}
