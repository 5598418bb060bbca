package refs

import (
	"cmp"
	"fmt"
	"slices"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"podd/manifest"
	"podd/manifest/trustbundle"
	"podd/manifest/wording"
)

// TrustBundleRef returns the reference that a source of a projected volume contains. It refers to
// one ClusterTrustBundle, or to all ClusterTrustBundles of one signer.
func TrustBundleRef(s *v1.ClusterTrustBundleProjection) manifest.ObjectRef {
	if s.Name != nil {
		return manifest.ObjectRef{Kind: manifest.TrustBundleKind, NamespacedName: types.NamespacedName{Name: *s.Name}}
	}
	return manifest.ObjectRef{Kind: manifest.TrustBundlesKind, NamespacedName: types.NamespacedName{Name: ptr.Deref(s.SignerName, "")}}
}

// TrustAnchors returns the certificates of the ClusterTrustBundles that a source of a projected
// volume selects, as PEM. Their order is stable: bundles are sorted by name, and certificates have
// the order of their bundle. found is false if the source selects no bundle.
func (s *Resolved) TrustAnchors(source *v1.ClusterTrustBundleProjection) (anchors []byte, found bool) {
	if s == nil {
		return nil, false
	}
	var texts []string
	for _, b := range selectTrustBundles(s.trustBundles[TrustBundleRef(source)], source) {
		texts = append(texts, b.Spec.TrustBundle)
	}
	return trustbundle.Normalize(texts...), len(texts) > 0
}

// MissingTrustBundle returns the reason why TrustAnchors found no bundle for a source.
func (s *Resolved) MissingTrustBundle(source *v1.ClusterTrustBundleProjection) manifest.MissingObject {
	ref := TrustBundleRef(source)
	if ref.Kind == manifest.TrustBundlesKind && (s == nil || s.trustBundles[ref] != nil) {
		return manifest.MissingObject{DoesNotExist: true, Message: describeSelection(source) + " does not exist"}
	}
	return s.missingObject(ref)
}

// selectTrustBundles returns the bundles that a source of a projected volume selects, sorted by
// name.
func (o *lookup) selectTrustBundles(source *v1.ClusterTrustBundleProjection) []*certificates.ClusterTrustBundle {
	return selectTrustBundles(o.trustBundles(TrustBundleRef(source)), source)
}

// trustBundles returns the bundles to which ref refers, sorted by name. The result is nil if the
// bundle that ref names does not exist, or if the lookup at the API server has no result.
func (o *lookup) trustBundles(ref manifest.ObjectRef) []*certificates.ClusterTrustBundle {
	if ref.Kind == manifest.TrustBundleKind {
		if b := o.TrustBundles[ref.NamespacedName]; b != nil {
			return []*certificates.ClusterTrustBundle{b}
		}
		return nil
	}
	bundles := slices.Clone(o.cluster.SignerTrustBundles[ref.Name])
	if !o.IsFromServer() {
		bundles = []*certificates.ClusterTrustBundle{}
		for _, b := range o.TrustBundles {
			if b.Spec.SignerName == ref.Name {
				bundles = append(bundles, b)
			}
		}
	}
	slices.SortFunc(bundles, func(a, b *certificates.ClusterTrustBundle) int { return cmp.Compare(a.Name, b.Name) })
	return bundles
}

// selectTrustBundles returns the elements of bundles that a source of a projected volume selects. A
// source with a signer and without a labelSelector selects nothing.
func selectTrustBundles(bundles []*certificates.ClusterTrustBundle, source *v1.ClusterTrustBundleProjection) []*certificates.ClusterTrustBundle {
	if source.Name != nil {
		return bundles
	}
	selector, err := metav1.LabelSelectorAsSelector(source.LabelSelector)
	if err != nil {
		return nil // package validate rejects a pod with an invalid selector
	}
	var selected []*certificates.ClusterTrustBundle
	for _, b := range bundles {
		if b.Spec.SignerName == ptr.Deref(source.SignerName, "") && selector.Matches(labels.Set(b.Labels)) {
			selected = append(selected, b)
		}
	}
	return selected
}

// describeSelection returns the subject of a message about a source of a projected volume that
// selects no bundle of its signer.
func describeSelection(source *v1.ClusterTrustBundleProjection) string {
	text := fmt.Sprintf("ClusterTrustBundle of signer %q", ptr.Deref(source.SignerName, ""))
	switch s := source.LabelSelector; {
	case s == nil:
		text += " (without a labelSelector, none is selected; write labelSelector: {} to select all)"
	case len(s.MatchLabels)+len(s.MatchExpressions) > 0:
		text += fmt.Sprintf(" with the labels %q", wording.Clip(metav1.FormatLabelSelector(s), 80))
	}
	return text
}
