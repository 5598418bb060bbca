package source

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/merge"
)

// addFiles adds the pods and objects of the files of one source to b, in the order of the files. If
// two pods have the same name, addFiles adds both, because package merge decides which pod is used.
// missingFiles contains files that no longer exist but that podd has not removed yet. Such a file may
// have been renamed, so addFiles adds a pod of the file only if presentFiles does not contain the
// pod.
func addFiles(b *manifest.Batch, presentFiles, missingFiles []*manifest.File) {
	var objects []manifest.Objects
	presentPods := map[types.NamespacedName]bool{}
	for _, f := range presentFiles {
		for _, p := range f.Pods {
			presentPods[p.Key] = true
			b.Pods = append(b.Pods, p)
		}
		objects = append(objects, f.Objects)
	}
	allObjects, problems := merge.Objects(objects...)
	for _, f := range missingFiles {
		for _, p := range f.Pods {
			if !presentPods[p.Key] {
				b.Pods = append(b.Pods, p)
			}
		}
		allObjects, _ = merge.Objects(allObjects, f.Objects)
	}
	b.Objects = allObjects
	b.Problems = append(b.Problems, problems...)
}

// sameBatch reports whether two Batches of one source are equal. It compares the pointers to pods
// and objects. This is sufficient because an unchanged file is not decoded again.
func sameBatch(a, b manifest.Batch) bool {
	return a.IsComplete == b.IsComplete &&
		slices.Equal(a.Pods, b.Pods) &&
		slices.Equal(a.Problems, b.Problems) &&
		slices.Equal(a.FileStates, b.FileStates) &&
		maps.Equal(a.Objects.ConfigMaps, b.Objects.ConfigMaps) &&
		maps.Equal(a.Objects.Secrets, b.Objects.Secrets) &&
		maps.Equal(a.Objects.Claims, b.Objects.Claims) &&
		maps.Equal(a.Objects.Volumes, b.Objects.Volumes) &&
		maps.Equal(a.Objects.TrustBundles, b.Objects.TrustBundles) &&
		maps.Equal(a.Objects.CSIDrivers, b.Objects.CSIDrivers)
}
