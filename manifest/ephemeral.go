package manifest

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// WithEphemeral returns p with these ephemeral containers. They are not part of a manifest,
// so hashes and sizes do not depend on them. It returns p itself if it already has them.
func (p *Pod) WithEphemeral(containers []v1.EphemeralContainer) *Pod {
	if len(containers) == 0 && len(p.Spec.Spec.EphemeralContainers) == 0 || equality.Semantic.DeepEqual(p.Spec.Spec.EphemeralContainers, containers) {
		return p
	}
	out, spec := *p, *p.Spec
	spec.Spec.EphemeralContainers = containers
	out.Spec = &spec
	return &out
}
