package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	kjson "sigs.k8s.io/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	wire "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// APIVersions are those that plugins may speak. What podd says in them and reads
// is the same in all three.
var APIVersions = []string{
	wire.GroupName + "/v1", wire.GroupName + "/v1alpha1", wire.GroupName + "/v1beta1",
}

// decode reads the answer to a request of a version, strictly. Errors quote
// nothing of it.
func decode(data []byte, version string) (*wire.CredentialProviderResponse, error) {
	var said metav1.TypeMeta
	if err := json.Unmarshal(data, &said); err != nil {
		return nil, errors.New("it wrote no JSON to its standard output; it must write a CredentialProviderResponse")
	}
	switch {
	case said.APIVersion != version && slices.Contains(APIVersions, said.APIVersion):
		return nil, fmt.Errorf("it answered in %s and was asked in %s; write the one it speaks into its apiVersion", said.APIVersion, version)
	case said.APIVersion != version:
		return nil, fmt.Errorf("it answered in another apiVersion than %s", version)
	case said.Kind != "CredentialProviderResponse":
		return nil, errors.New("it answered with another kind than CredentialProviderResponse")
	}
	answer := &wire.CredentialProviderResponse{}
	strict, err := kjson.UnmarshalStrict(data, answer)
	if err != nil || len(strict) > 0 {
		return nil, errors.New("its CredentialProviderResponse has an unknown, repeated or mistyped field, not shown here; cacheKeyType, cacheDuration and auth with username and password are all there are")
	}
	if cacheKey(answer.CacheKeyType, "image") == "" {
		return nil, errors.New("the cacheKeyType of its answer is none of Image, Registry, Global")
	}
	return answer, nil
}
