package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/reconcile/effect"
	"podd/reconcile/pull/provider"
)

// loginsFromSecrets returns the credentials for the image of r in its Secrets of the types
// kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg. The most specific entry is the first
// one. Entries with equal keys are in the order of the Secrets. loginsFromSecrets ignores Secrets
// of other types. Errors never quote a Secret.
func loginsFromSecrets(r effect.ImageRequest) ([]login, error) {
	var entries []credential
	for _, s := range r.Secrets {
		var config dockerConfig
		var err error
		switch s.Type {
		case v1.SecretTypeDockerConfigJson:
			err = json.Unmarshal(s.Data[v1.DockerConfigJsonKey], &config)
		case v1.SecretTypeDockercfg:
			err = json.Unmarshal(s.Data[v1.DockerConfigKey], &config.Auths)
		}
		if err != nil {
			return nil, fmt.Errorf("the Secret %q of the pod's imagePullSecrets is not a Docker configuration", s.Name)
		}
		for _, c := range config.entriesFor(r.Image) {
			c.secret = &kubelet.ImagePullSecret{UID: recordedUID(s, r.Source), Namespace: s.Namespace, Name: s.Name, CredentialHash: c.hash}
			entries = append(entries, c)
		}
	}
	return sortSpecificFirst(entries), nil
}

// maxUIDLength is the maximum length of a UID in a record. The API server assigns shorter UIDs. In a
// manifest, a Secret may have a UID of any length.
const maxUIDLength = 63

// recordedUID returns the UID that records of image pulls contain for Secret s. A Secret without a
// UID is identified by its source, because two sources may have Secrets with the same namespace and
// name.
func recordedUID(s *v1.Secret, source string) string {
	if uid := string(s.UID); uid != "" && len(uid) <= maxUIDLength {
		return uid
	}
	sum := sha256.Sum256([]byte(source))
	return "source-" + hex.EncodeToString(sum[:16])
}

// A hashedAuth contains the fields of credentials whose hash the kubelet records, in its order.
type hashedAuth struct {
	Username      string `json:"username,omitempty"`
	Password      string `json:"password,omitempty"`
	Email         string `json:"email,omitempty"`
	IdentityToken string `json:"identitytoken,omitempty"`
	RegistryToken string `json:"registrytoken,omitempty"`
}

// credentialHash returns the hash of credentials that is recorded after a pull. It equals the hash of
// the kubelet if the credentials are a user and a password.
func credentialHash(a *cri.AuthConfig, email string) string {
	data, err := json.Marshal(hashedAuth{a.Username, a.Password, email, a.IdentityToken, a.RegistryToken})
	if err != nil {
		return "" // an empty hash matches no credentials
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A request is an image with the credentials of a pod. Pods with equal requests share a
// pull.
type request struct {
	image  string
	logins []login
	// hasSecrets reports whether the pod has imagePullSecrets, even if none of them applies to
	// image.
	hasSecrets bool
	// provider is the request to credential providers for the image. account is the namespace and name
	// of the pod's service account if their credentials depend on it, or "".
	provider provider.Request
	account  string
	// preloadedID is the ID of the present image if the image was preloaded, or "".
	preloadedID string
}

// key returns a string that identifies the request without revealing its credentials.
func (o request) key() string {
	if len(o.logins) == 0 && o.account == "" {
		return o.image
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%d:%s", len(o.account), o.account)
	for _, l := range o.logins {
		a := l.auth
		for _, text := range []string{a.Username, a.Password, a.Auth, a.IdentityToken, a.RegistryToken} {
			fmt.Fprintf(sum, "%d:%s", len(text), text)
		}
	}
	return o.image + " " + hex.EncodeToString(sum.Sum(nil))
}

// credentialsOf returns the credentials to record after a pull with l. If l is nil, the pull needed
// none.
func credentialsOf(l *login) kubelet.ImagePullCredentials {
	switch {
	case l != nil && l.secret != nil:
		return kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{*l.secret}}
	case l != nil && l.account != nil:
		return kubelet.ImagePullCredentials{KubernetesServiceAccounts: []kubelet.ImagePullServiceAccount{*l.account}}
	}
	return kubelet.ImagePullCredentials{NodePodsAccessible: true}
}
