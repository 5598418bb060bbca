package source

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// gather puts the files of one source together into its Batch, in their order.
// Of two pods with one name both are handed on, for Merge to judge. Files that
// are going come last and add only what no other has: a renamed file's pods are
// those of its new name.
func gather(b *manifest.Batch, files, going []*manifest.File) {
	var objects []manifest.Objects
	have := map[types.NamespacedName]bool{}
	for _, f := range files {
		for _, p := range f.Pods {
			have[p.Key] = true
			b.Pods = append(b.Pods, p)
		}
		objects = append(objects, f.Objects)
	}
	joined, problems := manifest.JoinObjects(objects...)
	for _, f := range going {
		for _, p := range f.Pods {
			if !have[p.Key] {
				b.Pods = append(b.Pods, p)
			}
		}
		joined, _ = manifest.JoinObjects(joined, f.Objects)
	}
	b.Objects = joined
	b.Problems = append(b.Problems, problems...)
}

// sameBatch says that two Batches of one source tell the same. Pods and objects
// are compared as pointers: what did not change was not decoded again.
func sameBatch(a, b manifest.Batch) bool {
	return a.Complete == b.Complete &&
		slices.Equal(a.Pods, b.Pods) &&
		slices.Equal(a.Problems, b.Problems) &&
		slices.Equal(a.Files, b.Files) &&
		maps.Equal(a.Objects.ConfigMaps, b.Objects.ConfigMaps) &&
		maps.Equal(a.Objects.Secrets, b.Objects.Secrets) &&
		maps.Equal(a.Objects.Claims, b.Objects.Claims) &&
		maps.Equal(a.Objects.Volumes, b.Objects.Volumes)
}
