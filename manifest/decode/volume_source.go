package decode

import (
	"fmt"
	"maps"
	"slices"

	"podd/manifest/wording"
)

// checkSources refuses a volume with an unknown field as its only source, because Kubernetes
// would make it an emptyDir and the data would be lost.
func checkSources(written map[string]any, known any, n *notes) {
	list := func(pod any) []any {
		top, _ := pod.(map[string]any)
		spec, _ := top["spec"].(map[string]any)
		volumes, _ := spec["volumes"].([]any)
		return volumes
	}
	clean := list(known)
	for i, volume := range list(written) {
		w, _ := volume.(map[string]any)
		k, _ := clean[i].(map[string]any)
		_, named := k["name"]
		if len(k) > 1 || len(k) == 1 && !named {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if podSchema().Field("spec", "volumes", key) == nil {
				n.fail(fmt.Sprintf("spec.volumes[%d]", i), "has no known source and would become an emptyDir; correct %q", wording.Clip(key, 80))
			}
		}
	}
}
