package decode

import (
	"fmt"
	"maps"
	"slices"

	"podd/manifest/wording"
)

// checkVolumeSources refuses a volume if its only source is an unknown field. Kubernetes would make
// the volume an emptyDir, and its data would be lost. The parameter user is the pod as the user
// wrote it, and the parameter checked is this pod without unknown fields.
func checkVolumeSources(user map[string]any, checked any, n *objectProblems) {
	list := func(pod any) []any {
		top, _ := pod.(map[string]any)
		spec, _ := top["spec"].(map[string]any)
		volumes, _ := spec["volumes"].([]any)
		return volumes
	}
	checkedVolumes := list(checked)
	for i, volume := range list(user) {
		userFields, _ := volume.(map[string]any)
		fields, _ := checkedVolumes[i].(map[string]any)
		_, named := fields["name"]
		if len(fields) > 1 || len(fields) == 1 && !named {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(userFields)) {
			if podSchema().Field("spec", "volumes", key) == nil {
				n.addError(fmt.Sprintf("spec.volumes[%d]", i), "has no known volume source and would become an emptyDir; correct %q", wording.Clip(key, 80))
			}
		}
	}
}
