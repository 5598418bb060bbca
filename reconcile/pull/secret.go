package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// credentialsFromSecrets returns the credentials for an image in Secrets of the types
// kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg. The most specific entry is the first
// one. Entries with equal keys are in the order of secrets. credentialsFromSecrets ignores Secrets
// of other types. Errors never quote a Secret.
func credentialsFromSecrets(image string, secrets []*v1.Secret) ([]*cri.AuthConfig, error) {
	var all []credential
	for _, s := range secrets {
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
		all = append(all, config.matching(image)...)
	}
	return sortSpecificFirst(all), nil
}

// A request is an image with the credentials of a pod. Pods with equal requests share a
// pull.
type request struct {
	image string
	auths []*cri.AuthConfig
	// hasSecrets reports whether the pod has imagePullSecrets, even if none of them applies to
	// image.
	hasSecrets bool
}

// key returns a string that identifies the request without revealing its credentials.
func (o request) key() string {
	if len(o.auths) == 0 {
		return o.image
	}
	sum := sha256.New()
	for _, a := range o.auths {
		for _, text := range []string{a.Username, a.Password, a.Auth, a.IdentityToken, a.RegistryToken} {
			fmt.Fprintf(sum, "%d:%s", len(text), text)
		}
	}
	return o.image + " " + hex.EncodeToString(sum.Sum(nil))
}
