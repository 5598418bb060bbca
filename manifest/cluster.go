package manifest

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is what an API server says, beside the Objects themselves, of what its
// pods refer to. Immutable.
type Cluster struct {
	// Lacks says why an object that was looked up is not there. One that is neither
	// there nor here was not looked up yet.
	Lacks map[ObjectRef]Lack
	// Tokens are by the names that TokenOf gives.
	Tokens map[types.NamespacedName]Token
	// Handlers are those of RuntimeClasses, by the class's name.
	Handlers map[string]string
	// Services are by namespace; nil: not known yet.
	Services map[string]*Services
	// Drivers are the CSIDrivers by name; nil: not known yet.
	Drivers map[string]*storage.CSIDriverSpec
	// Attached are the volumes that are attached to this machine, by the names that
	// AttachmentName gives, with what their attacher says of them.
	Attached map[string]map[string]string
}

// Token is one of a pod's service account.
type Token struct {
	Text    []byte
	Expires metav1.Time
}

// Lack is why an object is not there.
type Lack struct {
	// Absent says that there is none, so that what is optional does without. Else
	// nobody knows.
	Absent bool
	// Soon says that it comes by itself, which is no trouble yet.
	Soon bool
	// Why is for users, in the words of Kubernetes: `configmap "c" not found`.
	Why string
}

// What nodes look up but objects of manifests never are.
const (
	kindToken      = "TokenRequest"
	kindClass      = "RuntimeClass"
	kindAttachment = "VolumeAttachment"
)

// TokenOf names the token of a projected volume of a pod: one for each audience
// and lifetime.
func TokenOf(pod *v1.Pod, t *v1.ServiceAccountTokenProjection) ObjectRef {
	name := fmt.Sprintf("%s/%d/%s", pod.UID, lifetime(t), t.Audience)
	return ObjectRef{kindToken, types.NamespacedName{Namespace: pod.Namespace, Name: name}}
}

// lifetime is the API server's default where there is none.
func lifetime(t *v1.ServiceAccountTokenProjection) int64 {
	if t.ExpirationSeconds == nil {
		return 60 * 60
	}
	return *t.ExpirationSeconds
}

// EphemeralClaim is the name of the claim that a cluster makes for an ephemeral
// volume of a pod.
func EphemeralClaim(pod *v1.Pod, volume string) string { return pod.Name + "-" + volume }

// lookedUp says that an API server said of an object that it is there, or why not.
func (o *Objects) lookedUp(ref ObjectRef) bool {
	if o.Cluster == nil {
		return false
	}
	_, lacks := o.Cluster.Lacks[ref]
	return lacks || o.there(ref)
}

func (o *Objects) there(ref ObjectRef) (is bool) {
	switch ref.Kind {
	case "ConfigMap":
		_, is = o.ConfigMaps[ref.NamespacedName]
	case "Secret":
		_, is = o.Secrets[ref.NamespacedName]
	case kindClaim:
		_, is = o.Claims[ref.NamespacedName]
	case kindToken:
		_, is = o.Cluster.Tokens[ref.NamespacedName]
	case kindClass:
		_, is = o.Cluster.Handlers[ref.Name]
	case kindAttachment:
		_, is = o.Cluster.Attached[ref.Name]
	}
	return is
}

// waits is what a pod of an API server cannot be set up without. What variables
// are made of only their containers wait for.
func (o *Objects) waits(p *Pod, used []Use, node *Node) Wait {
	if o.Cluster == nil || o.Cluster.Services == nil {
		return Wait{Missing: "the Services of the cluster are not known yet", Soon: true}
	}
	if o.Cluster.Drivers == nil && o.needsDriver(p.Spec) {
		return Wait{Missing: "the CSIDrivers of the cluster are not known yet", Soon: true}
	}
	for _, u := range used {
		if !o.lookedUp(u.Object) && u.Role != ForEphemeral {
			return Wait{Missing: u.Object.shown() + " is being looked up", Soon: true}
		}
	}
	for _, u := range used {
		switch u.Role {
		case ForFiles, ForMount, ForSandbox, ForDriver:
			if why := o.lackOf(p, u, node); why != "" {
				return Wait{Missing: why, Volume: u.volumeOf(p.Spec), Soon: o.Cluster.Lacks[u.Object].Soon}
			}
		}
	}
	return o.driversWait(p)
}

// lackOf is why what a pod reads of an object is not there, "" when it is or need
// not be.
func (o *Objects) lackOf(p *Pod, u Use, node *Node) string {
	lack, lacks := o.Cluster.Lacks[u.Object]
	switch {
	case lacks && u.Optional && (lack.Absent || u.Role == ForDriver):
		return ""
	case lacks && u.Role == ForDriver && u.Object.Kind == "Secret":
		return fmt.Sprintf("fetching %s %s failed: %s", u.Field[strings.LastIndex(u.Field, ".")+1:], u.Object.NamespacedName, lack.Why)
	case lacks:
		return lack.Why
	case u.Object.Kind == kindClaim:
		return o.claimOf(p, u, node)
	case u.Optional:
		return ""
	}
	for _, key := range u.Keys {
		if !o.has(u.Object, key, u.Role) {
			return fmt.Sprintf("references non-existent %s key: %s", configOr(u.Object.Kind), clip(key, 80))
		}
	}
	return ""
}

// configOr is the kubelet's word for a kind in the message about a key.
func configOr(kind string) string {
	if kind == "ConfigMap" {
		return "config"
	}
	return strings.ToLower(kind)
}

// shown is String without names that nobody gave.
func (r ObjectRef) shown() string {
	switch r.Kind {
	case kindToken:
		return "a token of the pod's service account"
	case kindAttachment:
		return "whether a volume is attached"
	}
	return r.String()
}

// volumeOf is the volume that a use is part of, "" for none.
func (u Use) volumeOf(pod *v1.Pod) string {
	var i int
	if n, _ := fmt.Sscanf(u.Field, "spec.volumes[%d]", &i); n == 1 && i < len(pod.Spec.Volumes) {
		return pod.Spec.Volumes[i].Name
	}
	return ""
}
