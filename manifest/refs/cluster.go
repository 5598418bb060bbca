package refs

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/wording"
)

// TokenRef returns the reference to the token of a projected volume. Projections with the same
// audience and lifetime have the same token.
func TokenRef(pod *v1.Pod, t *v1.ServiceAccountTokenProjection) manifest.ObjectRef {
	name := fmt.Sprintf("%s/%d/%s", pod.UID, tokenLifetime(t), t.Audience)
	return manifest.ObjectRef{Kind: manifest.TokenKind, NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}}
}

// PodCertificateRef returns the reference to the certificate for one source of a projected volume.
// The parameter index is the index of this source. Each source has its own key and certificate.
func PodCertificateRef(pod *v1.Pod, volume string, index int) manifest.ObjectRef {
	name := fmt.Sprintf("%s/%s/%d", pod.UID, volume, index)
	return manifest.ObjectRef{Kind: manifest.CertificateKind, NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}}
}

// tokenLifetime returns the lifetime of a token in seconds. It is the default of the API server if t
// does not set it.
func tokenLifetime(t *v1.ServiceAccountTokenProjection) int64 {
	if t.ExpirationSeconds == nil {
		return 60 * 60
	}
	return *t.ExpirationSeconds
}

// EphemeralClaimName returns the name of the claim that a cluster creates for a generic ephemeral
// volume.
func EphemeralClaimName(pod *v1.Pod, volume string) string { return pod.Name + "-" + volume }

// isLookedUp reports whether the lookup of an object at the API server has a result: the
// object, or the reason why the object is missing.
func (o *lookup) isLookedUp(ref manifest.ObjectRef) bool {
	_, isMissing := o.cluster.Missing[ref]
	return isMissing || o.exists(ref)
}

// exists reports whether o contains the object to which ref refers.
func (o *lookup) exists(ref manifest.ObjectRef) (found bool) {
	switch ref.Kind {
	case manifest.ConfigMapKind:
		_, found = o.ConfigMaps[ref.NamespacedName]
	case manifest.SecretKind:
		_, found = o.Secrets[ref.NamespacedName]
	case manifest.ClaimKind:
		_, found = o.Claims[ref.NamespacedName]
	case manifest.TrustBundleKind:
		_, found = o.TrustBundles[ref.NamespacedName]
	case manifest.TrustBundlesKind:
		_, found = o.cluster.SignerTrustBundles[ref.Name]
	case manifest.TokenKind:
		_, found = o.cluster.Tokens[ref.NamespacedName]
	case manifest.CertificateKind:
		_, found = o.cluster.PodCertificates[ref.NamespacedName]
	case manifest.RuntimeClassKind:
		_, found = o.cluster.RuntimeHandlers[ref.Name]
	case manifest.AttachmentKind:
		_, found = o.cluster.AttachedVolumes[ref.Name]
	case manifest.CSIDriverKind:
		_, found = o.drivers[ref.Name]
	}
	return found
}

// blocker returns the reason why a pod of an API server cannot be set up yet. A missing object for
// variables does not delay the pod, because only the containers with these variables wait for the
// object.
func (o *lookup) blocker(p *manifest.Pod, refs []Ref, node *manifest.Node) Blocker {
	if o.cluster.Services == nil {
		return Blocker{MissingMessage: "podd has not listed the Services of the cluster yet", EndsByItself: true}
	}
	if o.drivers == nil && o.needsDriver(p.Object) {
		return Blocker{MissingMessage: "podd has not listed the CSIDrivers of the cluster yet", EndsByItself: true}
	}
	for _, u := range refs {
		if !o.isLookedUp(u.Object) && u.role != forEphemeral {
			return Blocker{MissingMessage: displayName(u.Object) + " is being looked up", EndsByItself: true}
		}
	}
	b := o.missingObjectBlocker(p, refs, node)
	b.AttachLimitMessage = o.attachLimitMessage(p, refs)
	return b
}

// missingObjectBlocker returns the reason why a pod of an API server cannot be set up yet after all
// lookups have a result. If several objects are missing, it prefers an object that will not exist
// without an action of a user.
func (o *lookup) missingObjectBlocker(p *manifest.Pod, refs []Ref, node *manifest.Node) Blocker {
	var firstBlocker Blocker
	for _, u := range refs {
		switch u.role {
		case forFiles, forMount, forSandbox, forDriver:
			reason := o.missingReason(p, u, node)
			missingObject := o.cluster.Missing[u.Object]
			b := Blocker{MissingMessage: reason, Volume: u.volumeOf(p.Object), EndsByItself: missingObject.WillExist, Remedy: missingObject.Remedy}
			switch {
			case reason == "":
			case !b.EndsByItself:
				return b
			case firstBlocker == Blocker{}:
				firstBlocker = b
			}
		}
	}
	if firstBlocker != (Blocker{}) {
		return firstBlocker
	}
	return o.driverBlocker(p)
}

// missingReason returns the reason why an object or key is missing; "" if it exists or is
// optional.
func (o *lookup) missingReason(p *manifest.Pod, u Ref, node *manifest.Node) string {
	missingObject, isMissing := o.cluster.Missing[u.Object]
	switch {
	case isMissing && u.Optional && (missingObject.DoesNotExist || u.role == forDriver):
		return ""
	case isMissing && u.role == forDriver && u.Object.Kind == manifest.SecretKind:
		return fmt.Sprintf("fetching %s %s failed: %s", u.FieldPath[strings.LastIndex(u.FieldPath, ".")+1:], u.Object.NamespacedName, missingObject.Message)
	case isMissing:
		return missingObject.Message
	case u.Object.Kind == manifest.ClaimKind:
		return o.claimProblem(p, u, node)
	case u.Optional:
		return ""
	case u.TrustBundle != nil && len(o.selectTrustBundles(u.TrustBundle)) == 0:
		return describeSelection(u.TrustBundle) + " not found"
	}
	for _, key := range u.Keys {
		if !o.hasKey(u.Object, key, u.role) {
			return fmt.Sprintf("references non-existent %s key: %s", kindInMessage(u.Object.Kind), wording.Clip(key, 80))
		}
	}
	return ""
}

// kindInMessage returns the name that the kubelet uses for a kind in its message about a missing
// key.
func kindInMessage(kind string) string {
	if kind == manifest.ConfigMapKind {
		return "config"
	}
	return strings.ToLower(kind)
}

// displayName is like ObjectRef.String, but omits names that podd has generated.
func displayName(r manifest.ObjectRef) string {
	switch r.Kind {
	case manifest.TrustBundlesKind:
		return fmt.Sprintf("the list of ClusterTrustBundles of signer %q", r.Name)
	case manifest.TokenKind:
		return "a token of the pod's service account"
	case manifest.CertificateKind:
		return "a certificate of the pod"
	case manifest.AttachmentKind:
		return "whether a volume is attached"
	}
	return r.String()
}

// volumeOf returns the name of the pod's volume that contains the reference, or "".
func (u Ref) volumeOf(pod *v1.Pod) string {
	var i int
	if n, _ := fmt.Sscanf(u.FieldPath, "spec.volumes[%d]", &i); n == 1 && i < len(pod.Spec.Volumes) {
		return pod.Spec.Volumes[i].Name
	}
	return ""
}
