package validate

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// requiredSecretKeys lists the keys that a Secret of a type must have.
var requiredSecretKeys = map[v1.SecretType][]string{
	v1.SecretTypeDockerConfigJson: {v1.DockerConfigJsonKey},
	v1.SecretTypeDockercfg:        {v1.DockerConfigKey},
	v1.SecretTypeSSHAuth:          {v1.SSHAuthPrivateKey},
	v1.SecretTypeTLS:              {v1.TLSCertKey, v1.TLSPrivateKeyKey},
}

// validateSecretType checks that a Secret has the keys of its type. Errors contain no
// value.
func validateSecretType(s *v1.Secret) field.ErrorList {
	var errs field.ErrorList
	dataPath := field.NewPath("data")
	for _, key := range requiredSecretKeys[s.Type] {
		text, exists := s.Data[key]
		switch {
		case !exists:
			errs = append(errs, field.Required(dataPath.Key(key), "a Secret of type "+string(s.Type)+" requires this key"))
		case s.Type == v1.SecretTypeDockerConfigJson || s.Type == v1.SecretTypeDockercfg:
			var object map[string]any
			if json.Unmarshal(text, &object) != nil {
				errs = append(errs, field.Invalid(dataPath.Key(key), "", "is not a JSON object"))
			}
		}
	}
	if s.Type == v1.SecretTypeBasicAuth {
		_, hasUsername := s.Data[v1.BasicAuthUsernameKey]
		_, hasPassword := s.Data[v1.BasicAuthPasswordKey]
		if !hasUsername && !hasPassword {
			errs = append(errs, field.Required(dataPath.Key(v1.BasicAuthUsernameKey), "a Secret of type "+string(s.Type)+" needs a username or a password"))
		}
	}
	return errs
}
