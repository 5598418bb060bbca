package manifest

import (
	certificates "k8s.io/api/certificates/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Cluster contains the data that an API server has returned for the references of pods.
// ConfigMaps and other objects that can also be in manifests are in Objects instead. A Cluster is
// immutable.
type Cluster struct {
	// Missing contains the reason why an object that was looked up is missing. An object that
	// is in neither Missing nor Objects was not looked up yet.
	Missing map[ObjectRef]MissingObject
	// Tokens contains the tokens of service accounts for pods. A key is the name in the ObjectRef
	// that refs.TokenRef returns.
	Tokens map[types.NamespacedName]Token
	// PodCertificates contains the certificates that signers have issued for pods. A key is the name
	// in the ObjectRef that refs.PodCertificateRef returns.
	PodCertificates map[types.NamespacedName]*PodCertificate
	// SignerTrustBundles maps the name of a signer to its ClusterTrustBundles. It contains only
	// signers with ClusterTrustBundles that were listed.
	SignerTrustBundles map[string][]*certificates.ClusterTrustBundle
	// RuntimeHandlers maps the name of a RuntimeClass to its handler.
	RuntimeHandlers map[string]string
	// Services contains the Services by namespace; nil until they were listed.
	Services map[string]*Services
	// CSIDrivers contains the CSIDrivers by name; nil until they were listed.
	CSIDrivers map[string]*storage.CSIDriverSpec
	// AttachedVolumes contains the volumes that are attached to this node. A key is the name of the
	// object of kind AttachmentKind. A value is the metadata that the attacher has returned; nil for an
	// iSCSI or Fibre Channel volume.
	AttachedVolumes map[string]map[string]string
}

// A Token is a service account token for a pod.
type Token struct {
	Text    []byte
	Expires metav1.Time
}

// A PodCertificate contains a private key and its certificate. It is immutable.
type PodCertificate struct {
	Key   []byte // PEM; secret
	Chain []byte // the certificate and the intermediate certificates, as PEM
}

// A MissingObject describes why an object is missing.
type MissingObject struct {
	// DoesNotExist reports whether the object does not exist. If so, an optional reference to the
	// object is ignored. If DoesNotExist is false, podd could not determine whether the object
	// exists.
	DoesNotExist bool
	// WillExist reports whether the object will exist without an action of a user. If so, its
	// absence is not an error yet.
	WillExist bool
	// Message is a message for users with the wording of Kubernetes: `configmap "c" not found`.
	Message string
	// Remedy tells users what to do if the object can never exist; "" if it can still be created.
	Remedy string
	// ExceedsAttachLimit reports whether the object is the attachment of a volume that could not be
	// attached within refs.AttachTimeout, because the node has reached a limit of attached volumes.
	ExceedsAttachLimit bool
}
