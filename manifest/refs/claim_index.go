package refs

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/order"
)

// claimIndex is an index of the claims and volumes of one source, for Claims.Bind.
type claimIndex struct {
	claims, volumes []types.NamespacedName        // sorted by name
	namedVolumes    map[string]bool               // volumes that a claim names
	referredClaims  map[types.NamespacedName]bool // claims that a volume refers to
}

func newClaimIndex(o *manifest.Objects) *claimIndex {
	i := &claimIndex{
		claims:       order.Collect(maps.Keys(o.Claims), manifest.CompareKeys),
		volumes:      order.Collect(maps.Keys(o.Volumes), manifest.CompareKeys),
		namedVolumes: map[string]bool{}, referredClaims: map[types.NamespacedName]bool{},
	}
	for _, c := range o.Claims {
		i.namedVolumes[c.Spec.VolumeName] = true
	}
	for _, pv := range o.Volumes {
		if ref := pv.Spec.ClaimRef; ref != nil {
			i.referredClaims[manifest.NewKey(ref.Namespace, ref.Name)] = true
		}
	}
	return i
}

// claimIndex returns the index of o. It computes the index on the first call.
func (o *lookup) claimIndex() *claimIndex {
	if o.index == nil {
		o.index = newClaimIndex(o.Objects)
	}
	return o.index
}
