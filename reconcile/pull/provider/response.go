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

// APIVersions contains the supported versions of the plugin API. Requests and responses have the
// same fields in all of these versions.
var APIVersions = []string{
	wire.GroupName + "/v1", wire.GroupName + "/v1alpha1", wire.GroupName + "/v1beta1",
}

// decode decodes the response to a request with this API version. It rejects unknown and
// repeated fields. Errors do not quote the response.
func decode(data []byte, version string) (*wire.CredentialProviderResponse, error) {
	var header metav1.TypeMeta
	if err := json.Unmarshal(data, &header); err != nil {
		return nil, errors.New("the program wrote no JSON to its standard output; it must write a CredentialProviderResponse")
	}
	switch {
	case header.APIVersion != version && slices.Contains(APIVersions, header.APIVersion):
		return nil, fmt.Errorf("the program responded with apiVersion %s to a request with %s; set the apiVersion of the provider to the version of its responses", header.APIVersion, version)
	case header.APIVersion != version:
		return nil, fmt.Errorf("the apiVersion of the response is not %s", version)
	case header.Kind != "CredentialProviderResponse":
		return nil, errors.New("the kind of the response is not CredentialProviderResponse")
	}
	res := &wire.CredentialProviderResponse{}
	strict, err := kjson.UnmarshalStrict(data, res)
	if err != nil || len(strict) > 0 {
		return nil, errors.New("the CredentialProviderResponse has an unknown, repeated or mistyped field, which is not shown because it may be secret; the supported fields are cacheKeyType, cacheDuration and auth with username and password")
	}
	if scopeOf(res.CacheKeyType, "image") == "" {
		return nil, errors.New("the cacheKeyType of the response is none of Image, Registry, Global")
	}
	return res, nil
}
