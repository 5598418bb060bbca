package manifest

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// claimIndex is what Binding asks of all claims and volumes of one source.
type claimIndex struct {
	claims, volumes []types.NamespacedName        // by name
	named           map[string]bool               // volumes that a claim names
	referred        map[types.NamespacedName]bool // claims that a volume refers to
}

func newClaimIndex(o *Objects) *claimIndex {
	i := &claimIndex{
		claims:  slices.SortedFunc(maps.Keys(o.Claims), byName),
		volumes: slices.SortedFunc(maps.Keys(o.Volumes), byName),
		named:   map[string]bool{}, referred: map[types.NamespacedName]bool{},
	}
	for _, c := range o.Claims {
		i.named[c.Spec.VolumeName] = true
	}
	for _, pv := range o.Volumes {
		if ref := pv.Spec.ClaimRef; ref != nil {
			i.referred[keyOf(ref.Namespace, ref.Name)] = true
		}
	}
	return i
}

// claimed is the index of a merged set, and of other objects one made anew.
func (o *Objects) claimed() *claimIndex {
	if o.index != nil {
		return o.index
	}
	return newClaimIndex(o)
}

// indexClaims once for all that is asked of the set; its objects are what they
// will be.
func (m *merger) indexClaims() {
	for source, o := range m.set.Objects {
		if len(o.Claims) > 0 && o.Cluster == nil {
			o.index = newClaimIndex(&o)
			m.set.Objects[source] = o
		}
	}
}
