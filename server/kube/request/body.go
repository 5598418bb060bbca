package request

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Message is an object that can be decoded from protobuf.
type Message interface {
	runtime.Object
	Unmarshal([]byte) error
}

// DecodeProtobuf decodes a body in the protobuf envelope of Kubernetes, which also contains the
// kind.
func DecodeProtobuf(body []byte, into Message) error {
	envelope, found := bytes.CutPrefix(body, []byte("k8s\x00"))
	if !found {
		return errors.New("the body is not in Kubernetes' protobuf format")
	}
	var u runtime.Unknown
	if err := u.Unmarshal(envelope); err != nil {
		return err
	}
	if err := into.Unmarshal(u.Raw); err != nil {
		return err
	}
	into.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(u.APIVersion, u.Kind))
	return nil
}

// NewUnsupportedMediaTypeError returns the error for a body with a media type that is not accepted.
func NewUnsupportedMediaTypeError(accepted ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", "),
	}}
}
