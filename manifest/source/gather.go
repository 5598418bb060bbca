package source

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/merge"
)

// gather adds the files of one source to its Batch, in their order. If two pods have the
// same name it adds both, because merging decides between them. The files in going are
// missing from their directory. They are added last, and only pods that no other file has:
// the pods of a renamed file come from its new name.
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
	joined, problems := merge.Objects(objects...)
	for _, f := range going {
		for _, p := range f.Pods {
			if !have[p.Key] {
				b.Pods = append(b.Pods, p)
			}
		}
		joined, _ = merge.Objects(joined, f.Objects)
	}
	b.Objects = joined
	b.Problems = append(b.Problems, problems...)
}

// sameBatch reports whether two Batches of one source are equal. Pods and objects are
// compared as pointers, because an unchanged file is not decoded again.
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
