package clustertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"podd/cmd/podd/internal/cluster/apiserver"
)

// NewClient returns a client that sends its requests to the API server api.
func NewClient(t *testing.T, api http.RoundTripper, o apiserver.Options) *apiserver.Client {
	t.Helper()
	o.ContentType = "application/json"
	c, err := apiserver.New(&rest.Config{Host: "https://api", Transport: api}, &o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// JSONType is the header of a response in JSON.
var JSONType = http.Header{"Content-Type": {"application/json"}}

// Response returns a response with the JSON form of an object.
func Response(code int, object any) *http.Response {
	text, _ := json.Marshal(object)
	return &http.Response{StatusCode: code, Header: JSONType, Body: io.NopCloser(bytes.NewReader(text))}
}

// ErrorResponse returns the response for an error.
func ErrorResponse(err *apierrors.StatusError) *http.Response {
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return Response(int(s.Code), &s)
}

// MustDecode parses JSON.
func MustDecode[T any](text []byte) *T {
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		panic(err)
	}
	return &v
}
