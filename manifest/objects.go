package manifest

import (
	"strings"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Objects contains the objects other than pods, by kind and name.
type Objects struct {
	ConfigMaps map[types.NamespacedName]*v1.ConfigMap
	Secrets    map[types.NamespacedName]*v1.Secret
	Claims     map[types.NamespacedName]*v1.PersistentVolumeClaim
	// Volumes contains PersistentVolumes; their keys have no namespace.
	Volumes map[types.NamespacedName]*v1.PersistentVolume
	// TrustBundles contains ClusterTrustBundles; their keys have no namespace. If the objects
	// are from an API server, it contains only the bundles that pods refer to by name.
	// Cluster.SignerTrustBundles contains the bundles that pods select by signer.
	TrustBundles map[types.NamespacedName]*certificates.ClusterTrustBundle
	// CSIDrivers contains CSIDrivers of manifests; their keys have no namespace. The CSIDrivers of
	// an API server are in Cluster.CSIDrivers.
	CSIDrivers map[types.NamespacedName]*storage.CSIDriver
	// VolumesOnOtherNodes contains the Volumes with a nodeAffinity that excludes this node.
	VolumesOnOtherNodes map[types.NamespacedName]bool
	// PendingSource is the name of a source with a higher precedence that has not been read
	// completely yet; "" if there is none. That source may still contain a claim that replaces
	// a claim with the same key in the field Claims.
	PendingSource string
	// StoredClaims contains the claims with data in a directory that podd manages.
	// refs.ResolveSet sets it.
	StoredClaims map[types.NamespacedName]bool
	// Origins contains the origin of each object, without Fields. Objects of an API server
	// have none.
	Origins map[ObjectRef]Origin
	// Cluster contains further data of an API server; nil for objects of manifests.
	Cluster *Cluster
}

// IsFromServer reports whether an API server has returned the objects. If it has, names are
// unique, the cluster has bound the claims, and the API server decides which users may read
// the objects.
func (o *Objects) IsFromServer() bool { return o.Cluster != nil }

// Add adds an object. The type of object must be a pointer to the type that ref.Kind names.
func (o *Objects) Add(ref ObjectRef, object any, origin Origin) {
	origin.Fields = nil // not needed for objects; the map would use much memory
	setKey(&o.Origins, ref, origin)
	switch object := object.(type) {
	case *v1.ConfigMap:
		setKey(&o.ConfigMaps, ref.NamespacedName, object)
	case *v1.Secret:
		setKey(&o.Secrets, ref.NamespacedName, object)
	case *v1.PersistentVolumeClaim:
		setKey(&o.Claims, ref.NamespacedName, object)
	case *v1.PersistentVolume:
		setKey(&o.Volumes, ref.NamespacedName, object)
	case *certificates.ClusterTrustBundle:
		setKey(&o.TrustBundles, ref.NamespacedName, object)
	case *storage.CSIDriver:
		setKey(&o.CSIDrivers, ref.NamespacedName, object)
	}
}

// Copy adds the object to which ref refers. source must contain the object.
func (o *Objects) Copy(ref ObjectRef, source *Objects) {
	setKey(&o.Origins, ref, source.Origins[ref])
	key := ref.NamespacedName
	switch ref.Kind {
	case ConfigMapKind:
		setKey(&o.ConfigMaps, key, source.ConfigMaps[key])
	case SecretKind:
		setKey(&o.Secrets, key, source.Secrets[key])
	case ClaimKind:
		setKey(&o.Claims, key, source.Claims[key])
	case VolumeKind:
		setKey(&o.Volumes, key, source.Volumes[key])
		if source.VolumesOnOtherNodes[key] {
			setKey(&o.VolumesOnOtherNodes, key, true)
		}
	case TrustBundleKind:
		setKey(&o.TrustBundles, key, source.TrustBundles[key])
	case CSIDriverKind:
		setKey(&o.CSIDrivers, key, source.CSIDrivers[key])
	}
}

// setKey sets a key of a map, and creates the map if it is nil.
func setKey[M ~map[K]V, K comparable, V any](m *M, key K, v V) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = v
}

// Kinds of objects. Only the first six can be in manifests. A ClusterTrustBundleList represents
// all ClusterTrustBundles of a signer, and its name is the name of the signer. A TokenRequest
// represents the token of a pod's service account, and a PodCertificateRequest represents the
// certificate that a source of a pod's volume requests. A VolumeAttachment also represents the attachment
// of an iSCSI or Fibre Channel volume; its name is then that of the volume in the status of the Node.
const (
	ConfigMapKind    = "ConfigMap"
	SecretKind       = "Secret"
	ClaimKind        = "PersistentVolumeClaim"
	VolumeKind       = "PersistentVolume"
	TrustBundleKind  = "ClusterTrustBundle"
	CSIDriverKind    = "CSIDriver"
	TrustBundlesKind = "ClusterTrustBundleList"
	TokenKind        = "TokenRequest"
	CertificateKind  = "PodCertificateRequest"
	RuntimeClassKind = "RuntimeClass"
	AttachmentKind   = "VolumeAttachment"
)

// IsClusterScoped reports whether objects of a kind have no namespace. It must be called only for
// the kinds that can be in manifests.
func IsClusterScoped(kind string) bool {
	return kind == VolumeKind || kind == TrustBundleKind || kind == CSIDriverKind
}

// An ObjectRef names an object. PersistentVolumes, ClusterTrustBundles, CSIDrivers, RuntimeClasses
// and VolumeAttachments have no namespace.
type ObjectRef struct {
	Kind string // ConfigMapKind, for example
	types.NamespacedName
}

// String returns a text like "ConfigMap default/conf".
func (r ObjectRef) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.NamespacedName.String()
}

// NewKey returns a key with the given namespace and name. An empty namespace means "default".
func NewKey(namespace, name string) types.NamespacedName {
	if namespace == "" {
		namespace = v1.NamespaceDefault
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// CompareKeys compares two keys by their text, "namespace/name", and returns -1, 0 or 1.
func CompareKeys(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }
