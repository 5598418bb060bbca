package server

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReplyStatus responds with err in the format of the Kubernetes API, a
// metav1.Status.
func ReplyStatus(w http.ResponseWriter, err error) {
	s := KubeStatus(err)
	Reply(w, int(s.Code), s)
}

// KubeStatus converts err to a metav1.Status. If err is not an API error, the reason is derived
// from its HTTP status.
func KubeStatus(err error) *metav1.Status {
	kind := metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if statusErr := apierrors.APIStatus(nil); errors.As(err, &statusErr) {
		s := statusErr.Status()
		s.TypeMeta = kind
		return &s
	}
	code := HTTPStatus(err)
	return &metav1.Status{TypeMeta: kind, Status: metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: err.Error()}
}

var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusUnauthorized:          metav1.StatusReasonUnauthorized,
	http.StatusForbidden:             metav1.StatusReasonForbidden,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusNotAcceptable:         metav1.StatusReasonNotAcceptable,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusGone:                  metav1.StatusReasonExpired,
	http.StatusUnprocessableEntity:   metav1.StatusReasonInvalid,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
}
