// Package claims lists the PersistentVolumeClaims of manifests.
package claims

import (
	"cmp"

	"podd/manifest"
	"podd/manifest/order"
	"podd/server"
)

// List returns the PersistentVolumeClaims in a Set, sorted by name and path. It omits the claims of
// a cluster, because the data of these claims is not in podd's root directory.
func List(set *manifest.Set) []server.ClaimView {
	var claims []server.ClaimView
	for _, o := range set.ObjectsBySource {
		if o.IsFromServer() {
			continue
		}
		for key, c := range o.Claims {
			at := o.Origins[manifest.ObjectRef{Kind: "PersistentVolumeClaim", NamespacedName: key}]
			claims = append(claims, server.ClaimView{
				Claim: server.Key(key), Requested: c.Spec.Resources.Requests.Storage().String(), Path: at.Path, Line: at.Line,
			})
		}
	}
	order.Slice(claims, func(a, b server.ClaimView) int {
		return cmp.Or(cmp.Compare(a.Claim.String(), b.Claim.String()), cmp.Compare(a.Path, b.Path))
	})
	return claims
}
