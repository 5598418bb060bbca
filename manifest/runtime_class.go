package manifest

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
)

// RuntimeHandler is the runtime's handler for a pod: the one that classes has
// for its class, or else the one of the same name; "" is the default one. There
// is no cluster to have RuntimeClasses.
func RuntimeHandler(spec *v1.PodSpec, classes map[string]string) string {
	if spec.RuntimeClassName == nil {
		return ""
	}
	return cmp.Or(classes[*spec.RuntimeClassName], *spec.RuntimeClassName)
}
