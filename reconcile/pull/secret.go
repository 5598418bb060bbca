package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fromSecrets are the credentials for an image in Secrets of the types
// kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg, the most specific of
// all of them first and else in their order; of other Secrets nothing is read.
// Errors never quote one.
func fromSecrets(image string, secrets []*v1.Secret) ([]*cri.AuthConfig, error) {
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
			return nil, fmt.Errorf("the Secret %q of its imagePullSecrets is no Docker configuration", s.Name)
		}
		all = append(all, config.matching(image)...)
	}
	return specificFirst(all), nil
}

// order is an image with the credentials of the pod that wants it. Pods with
// equal ones share a pull.
type order struct {
	image string
	auths []*cri.AuthConfig
	// secrets says that the pod has Secrets, whether or not for this image.
	secrets bool
}

// key tells orders from one another, and nothing of their credentials.
func (o order) key() string {
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
