package manifest

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// WithEphemeral returns a copy of p with the given ephemeral containers, or p itself if p already
// has exactly these containers. Hashes and sizes do not depend on ephemeral containers, because a
// manifest contains no ephemeral containers.
func (p *Pod) WithEphemeral(containers []v1.EphemeralContainer) *Pod {
	if len(containers) == 0 && len(p.Object.Spec.EphemeralContainers) == 0 || equality.Semantic.DeepEqual(p.Object.Spec.EphemeralContainers, containers) {
		return p
	}
	podCopy, objectCopy := *p, *p.Object
	objectCopy.Spec.EphemeralContainers = containers
	podCopy.Object = &objectCopy
	return &podCopy
}
