package decode

import (
	"fmt"
	"maps"
	"slices"

	"podd/manifest/wording"
)

// checkVolumeSources refuses a volume if its only source is an unknown field. Kubernetes would make
// the volume an emptyDir, and its data would be lost. userPod is the pod as the user wrote it, and
// checkedPod is this pod without unknown fields.
func checkVolumeSources(userPod map[string]any, checkedPod any, n *objectProblems) {
	volumesOf := func(pod any) []any {
		object, _ := pod.(map[string]any)
		spec, _ := object["spec"].(map[string]any)
		volumes, _ := spec["volumes"].([]any)
		return volumes
	}
	checkedVolumes := volumesOf(checkedPod)
	for i, volume := range volumesOf(userPod) {
		userFields, _ := volume.(map[string]any)
		checkedFields, _ := checkedVolumes[i].(map[string]any)
		_, hasName := checkedFields["name"]
		if len(checkedFields) > 1 || len(checkedFields) == 1 && !hasName {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(userFields)) {
			if podSchema().Field("spec", "volumes", key) == nil {
				n.addError(fmt.Sprintf("spec.volumes[%d]", i), "has no known volume source and would become an emptyDir; correct the field name %q", wording.Clip(key, 80))
			}
		}
	}
}
