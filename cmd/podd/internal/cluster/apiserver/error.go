package apiserver

import (
	"errors"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrNotConnected is the error of a request before the first connection.
var ErrNotConnected = errors.New("not connected to the cluster yet")

// A HostError is the error of a request, with the host that the request was sent to.
type HostError struct {
	Host string
	err  error
}

func (e HostError) Error() string { return e.Host + ": " + e.err.Error() }
func (e HostError) Unwrap() error { return e.err }

// WithoutHost returns the error in a HostError, and other errors unchanged. The host is not
// relevant for users of a pod.
func WithoutHost(err error) error {
	if at, ok := err.(HostError); ok {
		return at.err
	}
	return err
}

// IsAPIError reports whether err contains an error response of the API server.
func IsAPIError(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// MaxMessageBytes is the maximum length of a message of the API server, in bytes.
const MaxMessageBytes = 500

// Sanitize shortens a message of the API server and replaces unprintable characters.
func Sanitize(text string) string {
	if len(text) > MaxMessageBytes {
		text = text[:MaxMessageBytes] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}
